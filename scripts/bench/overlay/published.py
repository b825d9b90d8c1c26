"""The figures that AgentFS, which also keeps changes of a project in SQLite, publishes about
itself: how many times as long as natively, on its authors' machine."""

PUBLISHED = "AgentFS, published elsewhere"

TIMES = {
    "read path, warm: all phases": "3.79x; later 2.1x to 2.4x",
    "read path, warm: stat_lstat_storm": "3.5x to 4.5x",
    "read path, warm: readdir_storm": "3.5x to 4.5x",
    "read path, warm: open_read_close_loop": "3.5x to 4.5x",
    "large edit, middle: whole process": "5.42x",
    "git: clone": "8.52x",
    "git: checkout": "0.33x",
    "git: status": "1.32x",
    "git: read_search": "1.12x",
    "git: edit": "6.01x",
    "git: diff": "1.65x",
    "git: fsck": "1.12x",
    "git: all phases": "4.45x",
}

GROWTH = {"large edit, middle": "52854784"}
