#include <string>
struct Own {
	int value;
};
struct Counted {
	static thread_local int count;
	virtual ~Counted();
	int add();
};
struct Derived : Counted {
	int more = 1;
};
void throws(int what);
Counted *make();
inline int &once()
{
	static int made = 0;
	static int value = 10 + ++made;
	return value;
}
inline std::string &events()
{
	static std::string text;
	return text;
}
template <typename T> T bigger(T a, T b) { return a < b ? b : a; }
inline int shared_between = once() + 1;
