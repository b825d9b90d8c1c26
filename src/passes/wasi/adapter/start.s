# The start of a program of WASI: maps memory for the adapter, then calls its part in C. In assembly
# because the adapter has no stack before, and because a global of the module, not a place in
# memory, holds the address of its state.
	.text
	.globaltype __stack_pointer, i32
	.globaltype wasi_state, i32
wasi_state:

	.functype lind_syscall (i32, i64, i64, i64, i64, i64, i64) -> (i64)
	.import_module lind_syscall, lind
	.import_name lind_syscall, syscall
	.functype wasi_main (i32) -> ()

	.globl state
	.type state,@function
state:
	.functype state () -> (i32)
	global.get wasi_state
	end_function

# The stack is 64 KiB, of which no function needs a tenth, and the state lies above.
	.globl start
	.type start,@function
	.export_name start, _start
start:
	.functype start (i32) -> ()
	.local i64
	i32.const 9             # mmap
	i64.const 0
	i64.const 98304         # STACK + STATE
	i64.const 3             # PROT_READ | PROT_WRITE
	i64.const 0x22          # MAP_PRIVATE | MAP_ANONYMOUS
	i64.const -1
	i64.const 0
	call lind_syscall
	local.tee 1
	i64.const 0
	i64.lt_s
	if
	unreachable
	end_if
	local.get 1
	i32.wrap_i64
	i32.const 65536
	i32.add
	global.set wasi_state
	global.get wasi_state
	global.set __stack_pointer
	local.get 0
	call wasi_main
	end_function
