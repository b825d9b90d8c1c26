# A fork whose child runs on its parent's memory: a global tells this to the import. This function
# may not keep anything in memory, as the child's calls use the stack below its caller's.
	.text
	.globaltype __lind_vfork, i32
	.globl __lind_vfork
__lind_vfork:

	.functype __lind_fork () -> (i32)
	.import_module __lind_fork, lind
	.import_name __lind_fork, fork
	.functype __syscall_ret (i32) -> (i32)

	.globl vfork
	.type vfork,@function
vfork:
	.functype vfork () -> (i32)
	i32.const 1
	global.set __lind_vfork
	call __lind_fork
	call __syscall_ret
	end_function
