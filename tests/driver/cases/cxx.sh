# C++ programs as their build systems make them: objects, archives, link-time optimisation, CMake,
# gcc's names for things.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }
cat >throws.cpp <<'END'
#include <stdexcept>
#include <string>
struct Guard { int *left; ~Guard() { ++*left; } };
int throws(int depth, int *left)
{
	Guard guard{left};
	if (depth == 0)
		throw std::runtime_error("depth " + std::to_string(depth));
	return throws(depth - 1, left) + 1;
}
END
cat >main.cpp <<'END'
#include <csetjmp>
#include <iostream>
#include <stdexcept>
int throws(int depth, int *left);
static jmp_buf back;
int main(int argc, char **argv)
{
	int left = 0;
	try { throws(5, &left); } catch (const std::exception &e) { std::cout << e.what() << ", " << left << std::endl; }
	if (int came = setjmp(back)) { std::cout << "jumped " << came << std::endl; }
	else longjmp(back, 3);
	if (argc > 1)
		throw std::logic_error(argv[1]);
}
END
# A machine that has much else to do prints a line of progress.
says() {
	[ "$(lind_run --root "$PWD" "$1" 2>&1 | grep -v '^lind-boot: compiling ')" = "depth 0, 6
jumped 3" ]
	lind_run --root "$PWD" "$1" nobody >out 2>err && exit 1
	grep -q 'terminating due to uncaught exception of type std::logic_error: nobody' err
}

set -x
for flags in "" "-O2 -g" "-O2 -flto -fno-rtti -std=c++17" "-O0 -stdlib=libc++ -pthread -fPIC"; do
	lind-c++ $flags main.cpp throws.cpp -o whole.wasm
	says whole.wasm
	$TRIPLE-g++ $flags -c main.cpp throws.cpp
	$TRIPLE-ar rcs libthrows.a throws.o
	$TRIPLE-g++ $flags -static-libstdc++ main.o -L. -lthrows -o parts.wasm
	says parts.wasm
done
# As a C compiler links it.
lind-cc main.o throws.o -lstdc++ -o c.wasm
says c.wasm
! lind-cc main.o throws.o -o none.wasm 2>messages
grep -q 'undefined symbol: .*std::' messages
# C++ that wants no library.
echo 'extern "C" int puts(const char *); int main() { puts("bare"); }' >bare.cpp
lind-c++ -fno-exceptions -fno-rtti -nostdlib++ bare.cpp -o bare.wasm
[ "$(lind_run --root "$PWD" bare.wasm)" = bare ]

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(throws CXX C)
find_package(Threads REQUIRED)
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <optional>
int main() { return std::optional<int>(0).value(); }" HAVE_OPTIONAL)
if(NOT HAVE_OPTIONAL)
	message(FATAL_ERROR "no optional")
endif()
add_library(throws STATIC throws.cpp)
add_executable(program main.cpp)
target_link_libraries(program throws Threads::Threads)
END
cmake -G Ninja -B made -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER=$TRIPLE-gcc -DCMAKE_CXX_COMPILER=$TRIPLE-g++ \
	-DCMAKE_AR="$(command -v $TRIPLE-ar)" -DCMAKE_RANLIB="$(command -v $TRIPLE-ranlib)" -DCMAKE_BUILD_TYPE=Release
cmake --build made
cp made/program cmake.wasm
says cmake.wasm
