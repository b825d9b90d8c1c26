;; An exception that nothing catches ends the cage, as abort does.
;; expect: signal 6
(tag $t)
(func $main (throw $t))
