;; What declares something unreadable is no program.
;; expect: exit 126
;; alone: it is no program
;; says: the manifest has an entry "owns everything"
(@custom "lind.grate" "answers openat\00owns everything\00")
(func $main)
