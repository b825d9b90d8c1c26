;; Nor does one that ends in the middle of a declaration.
;; expect: exit 126
;; alone: it is not a program
;; says: the manifest is cut off
(@custom "lind.grate" "answers openat\00observes rea")
(func $main)
