// The rest of the library by samples: containers, text, numbers, time, regular expressions,
// locales, coroutines.
#include "check.h"
#include <algorithm>
#include <any>
#include <bitset>
#include <charconv>
#include <chrono>
#include <clocale>
#include <complex>
#include <coroutine>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <list>
#include <locale>
#include <map>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>

using namespace std::string_literals;

static void containers()
{
	std::mt19937_64 random(5);
	std::vector<int> numbers(20000);
	std::generate(numbers.begin(), numbers.end(), [&] { return static_cast<int>(random() % 5000); });
	std::map<int, int> counts;
	std::unordered_map<int, int> hashed;
	for (int n : numbers) {
		counts[n]++;
		hashed[n]++;
	}
	CHECK_EQ(counts.size(), hashed.size());
	for (auto [n, count] : counts)
		if (hashed.at(n) != count)
			CHECK_EQ(hashed.at(n), count);
	auto sorted = numbers;
	std::stable_sort(sorted.begin(), sorted.end());
	std::ranges::sort(numbers);
	CHECK(sorted == numbers);
	std::deque<std::string> deque;
	for (int i = 0; i < 1000; i++)
		(i % 2 ? deque.emplace_front(std::to_string(i)) : deque.emplace_back(std::to_string(i)));
	CHECK_STR(deque.front().c_str(), "999");
	std::list<int> list(numbers.begin(), numbers.end());
	list.unique();
	CHECK_EQ(list.size(), counts.size());
	auto even = numbers | std::views::filter([](int n) { return n % 2 == 0; }) | std::views::take(3);
	CHECK_EQ(std::ranges::distance(even), 3);
	std::byte space[4096];
	std::pmr::monotonic_buffer_resource pool(space, sizeof space);
	std::pmr::vector<std::pmr::string> pooled(&pool);
	for (int i = 0; i < 500; i++)
		pooled.emplace_back("a string too long to be kept in place");
	CHECK_EQ(pooled.size(), 500);
	CHECK_EQ(std::bitset<100>("1011").count(), 3);
	std::variant<int, std::string> either = "text";
	CHECK(std::holds_alternative<std::string>(either));
	try { (void)std::get<int>(either); CHECK(false); } catch (const std::bad_variant_access &) { }
	try { (void)std::any_cast<int>(std::any(1.0)); CHECK(false); } catch (const std::bad_any_cast &) { }
	try { (void)std::optional<int>().value(); CHECK(false); } catch (const std::bad_optional_access &) { }
}

static void text()
{
	std::ostringstream out;
	out << std::hex << std::showbase << 255 << ' ' << std::dec << std::setw(6) << std::setfill('*') << 42 << ' ' << std::fixed
	    << std::setprecision(3) << 3.14159 << ' ' << std::scientific << 1e-300 << ' ' << std::boolalpha << true << ' '
	    << std::numeric_limits<long long>::min() << ' ' << std::quoted("a \"b\"");
	CHECK_STR(out.str().c_str(), "0xff ****42 3.142 1.000e-300 true -9223372036854775808 \"a \\\"b\\\"\"");
	std::istringstream in("12 0x1f -3.5e2 word rest of it");
	int a;
	double c;
	std::string word, b;
	in >> a >> b >> c >> word;
	CHECK_EQ(a, 12);
	CHECK(c == -350.0);
	CHECK_STR(word.c_str(), "word");
	CHECK_EQ(std::stoll("-9223372036854775808"), std::numeric_limits<long long>::min());
	try { (void)std::stoi("x"); CHECK(false); } catch (const std::invalid_argument &) { }
	try { (void)std::stoi("99999999999"); CHECK(false); } catch (const std::out_of_range &) { }
	char buffer[64];
	auto end = std::to_chars(buffer, buffer + sizeof buffer, 0.1).ptr;
	CHECK_STR(std::string(buffer, end).c_str(), "0.1");
	double back = 0;
	std::from_chars(buffer, end, back);
	CHECK(back == 0.1);
	CHECK("find me"s.find("me") == 5 && "abc"s.compare("abd") < 0 && std::string_view("abc").substr(1) == "bc");
	CHECK(L"w\u00e4"s.size() == 2 && u8"\u00e4"s.size() == 2 && U"\U0001f600"s.size() == 1);
	std::smatch match;
	std::string date = "on 2024-02-29, and";
	CHECK(std::regex_search(date, match, std::regex(R"((\d{4})-(\d\d)-(\d\d))")) && match[2] == "02");
	CHECK_STR(std::regex_replace(date, std::regex("[aeiou]"), "_").c_str(), "_n 2024-02-29, _nd");
	try { std::regex bad("(a"); CHECK(false); } catch (const std::regex_error &) { }
}

static void numbers()
{
	using namespace std::chrono;
	CHECK((sys_days(2024y / 2 / 29) + days(1)) == sys_days(2024y / 3 / 1));
	CHECK(steady_clock::now() <= steady_clock::now());
	CHECK(std::abs(std::exp(std::complex<double>(0, 3.14159265358979)) + 1.0) < 1e-12);
	CHECK_EQ(std::gcd(84, 36), 12);
	std::vector<int> three{1, 2, 3};
	CHECK_EQ(std::reduce(three.begin(), three.end()), 6);
	std::valarray<double> v{1, 4, 9};
	CHECK(std::sqrt(v).sum() == 6);
	std::mt19937 twister;
	twister.discard(9999);
	CHECK_EQ(twister(), 4123659995u);
	CHECK(sizeof(long double) == 16);
	CHECK(std::stold("1.25") == 1.25L);
}

static void locales()
{
	CHECK_STR(std::locale().name().c_str(), "C");
	CHECK_STR(std::locale::classic().name().c_str(), "C");
	CHECK(std::use_facet<std::ctype<char>>(std::locale()).is(std::ctype_base::alpha, 'q'));
	CHECK_EQ(std::tolower('A', std::locale()), 'a');
	struct Comma : std::numpunct<char> {
		char do_decimal_point() const override { return ','; }
		char do_thousands_sep() const override { return '.'; }
		std::string do_grouping() const override { return "\3"; }
	};
	std::ostringstream out;
	out.imbue(std::locale(std::locale::classic(), new Comma));
	out << 1234567 << ' ' << 1.5;
	CHECK_STR(out.str().c_str(), "1.234.567 1,5");
}

struct Numbers {
	struct promise_type {
		int value = 0;
		Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int n) { value = n; return {}; }
		void return_void() { }
		void unhandled_exception() { std::rethrow_exception(std::current_exception()); }
	};
	std::coroutine_handle<promise_type> handle;
};

static Numbers squares(int most)
{
	for (int i = 0; i < most; i++)
		co_yield i * i;
	throw most;
}

static void coroutines()
{
	Numbers numbers = squares(10);
	int sum = 0;
	try {
		for (numbers.handle.resume(); !numbers.handle.done(); numbers.handle.resume())
			sum += numbers.handle.promise().value;
		CHECK(false);
	} catch (int most) {
		CHECK_EQ(most, 10);
	}
	numbers.handle.destroy();
	CHECK_EQ(sum, 285);
}

static std::vector<int> order;
struct Noted { int n; explicit Noted(int i) : n(i) { order.push_back(n); } ~Noted() { order.push_back(-n); } };
static Noted first(1);
static Noted &lazy() { static Noted made(3); return made; }
static Noted second(2);

int main()
{
	CHECK((order == std::vector<int>{1, 2}));
	lazy();
	lazy();
	CHECK((order == std::vector<int>{1, 2, 3}));
	containers();
	text();
	numbers();
	locales();
	coroutines();
	return check_done();
}
