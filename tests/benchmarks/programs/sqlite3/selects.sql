-- Reading: by index, by scan, joined, grouped, sorted, with windows and subqueries.
CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, s TEXT);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000) INSERT INTO t SELECT x, x * 31 % 5000, 'n' || x % 100 FROM n;
CREATE INDEX t_b ON t(b);
SELECT count(*), sum(t.a), max(u.s) FROM t JOIN t u ON u.a = t.b;
SELECT s, count(*), avg(b), min(a) FROM t GROUP BY s ORDER BY 2, 1 LIMIT 5;
SELECT count(*) FROM t WHERE s LIKE '%9%' AND lower(s) || b LIKE 'n%1';
SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY s ORDER BY b DESC) AS r FROM t);
SELECT count(*) FROM t WHERE b IN (SELECT a FROM t WHERE s = 'n7') AND EXISTS (SELECT 1 FROM t u WHERE u.b = t.b AND u.a < t.a);
SELECT a, b FROM t ORDER BY b * 7 % 1001, a LIMIT 3;
SELECT sum(length(s) * b) FROM (SELECT DISTINCT s, b FROM t);
