# The tag of C++ exceptions. Compiled code names it, and the linker wants it defined once in a
# program.
	.globl __cpp_exception
	.tagtype __cpp_exception i32
__cpp_exception:
