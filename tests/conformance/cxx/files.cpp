// std::filesystem and streams on files.
#include "check.h"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

static void tree()
{
	fs::create_directories("a/b/c");
	std::ofstream("a/one.txt") << "one\n";
	std::ofstream("a/b/two.txt") << std::string(5000, '2');
	fs::create_symlink("../one.txt", "a/b/link");
	fs::create_hard_link("a/one.txt", "a/again");
	std::set<std::string> seen;
	for (const auto &entry : fs::recursive_directory_iterator("a"))
		seen.insert(entry.path().string());
	CHECK(seen == (std::set<std::string>{"a/b", "a/b/c", "a/one.txt", "a/again", "a/b/two.txt", "a/b/link"}));
	CHECK_EQ(fs::file_size("a/b/two.txt"), 5000);
	CHECK(fs::is_symlink("a/b/link") && fs::is_regular_file("a/b/link"));
	CHECK_STR(fs::read_symlink("a/b/link").c_str(), "../one.txt");
	CHECK_EQ(fs::hard_link_count("a/one.txt"), 2);
	CHECK(fs::equivalent("a/one.txt", "a/b/link"));
	CHECK(fs::canonical("a/b/../b/link") == fs::current_path() / "a/one.txt");
	CHECK_STR(fs::relative("a/b/c", "a/one.txt").c_str(), "../b/c");

	fs::copy("a", "copy", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
	CHECK_EQ(fs::file_size("copy/b/two.txt"), 5000);
	CHECK(fs::is_symlink("copy/b/link"));
	fs::resize_file("copy/b/two.txt", 10);
	CHECK_EQ(fs::file_size("copy/b/two.txt"), 10);
	fs::permissions("copy/one.txt", fs::perms::owner_read, fs::perm_options::replace);
	CHECK(fs::status("copy/one.txt").permissions() == fs::perms::owner_read);
	auto then = fs::file_time_type::clock::now() - std::chrono::hours(24);
	fs::last_write_time("a/one.txt", then);
	auto off = fs::last_write_time("a/one.txt") - then;
	CHECK(off < std::chrono::microseconds(2) && off > std::chrono::microseconds(-2));
	fs::rename("copy/b", "copy/d");
	CHECK(!fs::exists("copy/b") && fs::exists("copy/d/two.txt"));
	CHECK_EQ(fs::remove_all("copy"), 7);
	CHECK_EQ(fs::remove_all("a"), 7);
	CHECK_EQ(fs::remove_all("a"), 0);
	CHECK(fs::space(".").capacity > 0);
}

static void errors()
{
	std::error_code code;
	fs::create_directory("no/such", code);
	CHECK(code == std::errc::no_such_file_or_directory);
	try { (void)fs::file_size("none"); CHECK(false); }
	catch (const fs::filesystem_error &e) { CHECK(e.code() == std::errc::no_such_file_or_directory && e.path1() == "none"); }
	std::ifstream none("none");
	CHECK(!none && !none.is_open());
	std::ofstream("full") << "x";
	fs::create_directory("d");
	fs::rename("full", "d", code);
	CHECK(code == std::errc::is_a_directory);
	fs::remove("d");
	fs::remove("full");
}

static void streams()
{
	{
		std::fstream file("data", std::ios::in | std::ios::out | std::ios::trunc | std::ios::binary);
		for (int i = 0; i < 10000; i++)
			file << i << ' ';
		file.seekg(0);
		long sum = 0;
		for (int n; file >> n;)
			sum += n;
		CHECK_EQ(sum, 49995000);
		CHECK(file.eof());
		file.clear();
		file.seekp(-6, std::ios::end);
		file.write("12345", 5);
		file.seekg(-6, std::ios::end);
		std::string last;
		file >> last;
		CHECK_STR(last.c_str(), "12345");
	}
	{
		std::ifstream file("data");
		std::string line;
		CHECK(static_cast<bool>(std::getline(file, line)));
		CHECK_EQ(line.size(), fs::file_size("data"));
	}
	std::ofstream("data", std::ios::app) << "end";
	std::ifstream file("data", std::ios::ate);
	CHECK_EQ(file.tellg(), fs::file_size("data"));
	fs::remove("data");
}

int main()
{
	tree();
	errors();
	streams();
	return check_done();
}
