/* qsort is in qsort.c, which calls its comparison without another in between. */
