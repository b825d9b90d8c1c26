-- Expressions: text, numbers, JSON, dates in a loop without tables.
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000)
SELECT sum(length(printf('%05d-%s-%.3f', x, upper(hex(x)), x / 7.0))), sum(instr(x || 'abc', '5a')), sum(abs(x % 17 - 8) << 2) FROM n;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 40000)
SELECT sum(json_extract('{"a":[1,2,{"b":' || x || '}],"c":"text"}', '$.a[2].b')), max(substr(replace('one two three', 'o', x), 2, 9)) FROM n;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000)
SELECT count(DISTINCT strftime('%Y-%W', x * 86400, 'unixepoch')), sum(CASE WHEN x % 3 THEN x ELSE -x END) FROM n;
