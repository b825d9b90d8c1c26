/* No registers, no core files. */
