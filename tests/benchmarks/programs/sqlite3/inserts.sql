-- Rows inserted one by one, into tables without and with an index, changed and deleted.
CREATE TABLE plain(a INTEGER, b INTEGER, c TEXT);
CREATE TABLE keyed(a INTEGER PRIMARY KEY, b INTEGER, c TEXT);
CREATE INDEX keyed_b ON keyed(b);
BEGIN;
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 150000)
INSERT INTO plain SELECT x, x * 7919 % 100003, 'number ' || (x * 31 % 1009) FROM n;
INSERT INTO keyed SELECT * FROM plain;
COMMIT;
CREATE INDEX plain_c ON plain(c, a);
UPDATE keyed SET b = b + 1 WHERE b % 3 = 0;
UPDATE plain SET c = c || '!' WHERE a BETWEEN 1000 AND 40000;
DELETE FROM keyed WHERE a % 5 = 0;
DELETE FROM plain WHERE b < 20000;
SELECT count(*), sum(b), max(c) FROM plain;
SELECT count(*), sum(b), max(c) FROM keyed;
PRAGMA integrity_check;
