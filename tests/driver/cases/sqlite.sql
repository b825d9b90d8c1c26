create table t (id integer primary key, n integer, s text);
begin;
with recursive c(i) as (select 0 union all select i + 1 from c where i < 99999)
insert into t (n, s) select i, 'row ' || i from c;
commit;
create index by_s on t (s);
select count(*), sum(n), (select n from t where s = 'row 99999') from t;
begin;
delete from t where n % 2;
update t set s = 'changed';
rollback;
select count(*) from t where s like 'row %';
pragma integrity_check;
pragma journal_mode = wal;
insert into t (n, s) values (-1, 'one more');
select count(*) from t;
pragma integrity_check;
