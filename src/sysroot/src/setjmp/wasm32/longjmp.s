# longjmp as a function that has an address. In C the compiler would rewrite the call below.
	.text
	.functype __wasm_longjmp (i32, i32) -> ()

	.globl longjmp
	.type longjmp,@function
longjmp:
	.functype longjmp (i32, i32) -> ()
	local.get 0
	local.get 1
	call __wasm_longjmp
	unreachable
	end_function

	.globl _longjmp
	.type _longjmp,@function
_longjmp:
	.functype _longjmp (i32, i32) -> ()
	local.get 0
	local.get 1
	call __wasm_longjmp
	unreachable
	end_function
