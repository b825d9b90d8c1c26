// needs base
// opens a
#include "cxx.h"
#include <dlfcn.h>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <typeinfo>
int main()
{
	void *a = dlopen("./liba.so", RTLD_NOW);
	if (!a) {
		std::cout << dlerror() << std::endl;
		return 1;
	}
	auto catches = (int (*)(int))dlsym(a, "catches");
	auto passes = (void (*)(int, int *))dlsym(a, "passes");
	auto singleton = (int *(*)())dlsym(a, "singleton");
	std::cout << catches(1) << " " << catches(2) << std::endl;
	int left = 0;
	for (int what = 1; what <= 3; what++) {
		try {
			passes(what, &left);
		} catch (const std::runtime_error &e) {
			std::cout << "caught " << e.what() << std::endl;
		} catch (const Own &own) {
			std::cout << "own " << own.value << std::endl;
		} catch (int number) {
			std::cout << "number " << number << std::endl;
		}
	}
	std::cout << left << " " << Counted::count << std::endl;
	std::thread([&] { std::cout << "thread " << catches(2) << " " << Counted::count << std::endl; }).join();
	std::cout << (singleton() == &once()) << " " << once() << " " << shared_between << " " << events() << std::endl;
	Counted *made = make();
	std::cout << (dynamic_cast<Derived *>(made) != nullptr) << " " << (typeid(*made) == typeid(Derived)) << std::endl;
	std::cout << ((int (*)())dlsym(a, "is_derived"))() << " " << ((int (*)())dlsym(a, "largest"))() << " " << bigger(1, 2) << std::endl;
	std::cout << (dlsym(RTLD_DEFAULT, "_Z4makev") == (void *)make) << std::endl;
	delete made;
}
