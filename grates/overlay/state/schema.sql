-- What an overlay keeps: how a directory, which is never written to, was changed. Times are nanoseconds since 1970, numbers of files are st_ino
-- (1: the directory itself).
--
-- Each row belongs to a layer. What a head shows is found by going from its layer up to the parents: the first row of a key counts.

create table about(key text primary key, value) without rowid;

create table layers(	-- a tree: what a run changes goes to the layer of its head, the others never change
	layer integer primary key,
	parent integer,		-- less than layer; null: the lower directory
	name text unique,	-- of a snapshot, which is this layer with its parents
	made integer not null
);

create table heads(	-- what may be run: NAME.db is main, NAME.db:HEAD another
	head text primary key,
	layer integer not null
) without rowid;

create table nodes(	-- files, directories and links that are new or that differ from the lower directory
	ino integer not null,	-- from 2^60 on those that were made here
	layer integer not null,
	mode integer not null,	-- 0: the file is gone, or as in the lower directory
	nlink integer, uid integer, gid integer, rdev integer, size integer,
	atime integer, mtime integer, ctime integer, btime integer,
	origin,			-- path in the lower directory that shows through where nothing is stored; null: nothing does
	origin_size integer,	-- so many bytes of it may show through
	seen_ino integer, seen_size integer, seen_mtime integer, seen_ctime integer,	-- of it, before it was changed first
	target blob,		-- of a symbolic link
	xattrs blob,		-- each: name, zero byte, size in four bytes, value
	base integer not null,	-- so many bytes of the layers below may show through
	primary key(ino, layer)
) without rowid;

create table names(	-- names in directories that differ from the lower directory
	dir integer not null,
	name blob not null,
	layer integer not null,
	ino integer,		-- 0: there is no such name; null: as in the lower directory, whatever layers below say
	primary key(dir, name, layer)
) without rowid;

create table blocks(	-- bytes of files that were written, 65536 of them a row, in blocks of 4096
	ino integer not null,
	chunk integer not null,	-- number of the row in its file
	layer integer not null,
	held integer not null,	-- bit i: block i was written
	zeros integer not null,	-- bit i: and is all zeros, which are not in bytes
	bytes blob not null,	-- the others, one after the other; zeros at the end are left out. A text: they lie in the file data/INO, in these slots of 4096
	primary key(ino, chunk, layer)
);

create table log(	-- which command did what
	at integer not null,
	layer integer not null,
	command blob,
	kind text not null,	-- A made, M changed, D removed, R renamed
	path blob not null,
	other blob		-- what it was renamed to
);

create view changes as	-- of the head main
with recursive
	chain(layer) as (
		select layer from heads where head = 'main'
		union select layers.parent from layers join chain using (layer) where layers.parent is not null),
	node as (select *, max(layer) from nodes where layer in chain group by ino),
	entry as (select *, max(layer) from names where layer in chain group by dir, name),
	place(ino, path, way) as (
		select 1, '', ''
		union all select entry.ino, place.way || cast(entry.name as text), place.way || cast(entry.name as text) || '/'
			from entry join place on entry.dir = place.ino where entry.ino != 0)
select case when node.origin is null then 'A' when cast(node.origin as text) != place.path then 'R' else 'M' end as kind,
	place.path, node.size, node.mode, datetime(node.mtime / 1000000000, 'unixepoch') as changed, cast(node.origin as text) as origin
	from node join place using (ino) where node.mode != 0 and ino != 1
union all
select 'D', place.way || cast(entry.name as text), null, null, null, null from entry join place on entry.dir = place.ino where entry.ino = 0;
