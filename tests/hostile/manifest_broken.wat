;; A module with an unreadable declaration does not run.
;; expect: exit 126
;; alone: it is not a program
;; says: the manifest has an entry "owns everything"
(@custom "lind.grate" "answers openat\00owns everything\00")
(func $main)
