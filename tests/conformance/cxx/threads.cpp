// Threads and what synchronises them.
#include "check.h"
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <queue>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

static thread_local int own = 3;
static std::atomic<int> destroyed;
struct Leaves { int value = 1; ~Leaves() { destroyed += value; } };
static thread_local Leaves leaves;

static void counting()
{
	std::mutex lock;
	std::shared_mutex shared;
	long guarded = 0;
	std::atomic<long> atomic{0};
	std::vector<std::thread> threads;
	for (int i = 0; i < 6; i++)
		threads.emplace_back([&] {
			for (int n = 0; n < 2000; n++) {
				{ std::scoped_lock both(lock, shared); guarded++; }
				std::shared_lock reading(shared);
				atomic.fetch_add(guarded > 0);
			}
			own++;
			leaves.value = own;
		});
	for (auto &thread : threads)
		thread.join();
	CHECK_EQ(guarded, 12000);
	CHECK_EQ(atomic.load(), 12000);
	CHECK_EQ(own, 3);
	CHECK_EQ(destroyed.load(), 24);
}

static void queues()
{
	std::queue<int> queue;
	std::mutex lock;
	std::condition_variable_any changed;
	long sum = 0;
	std::jthread consumer([&](std::stop_token stop) {
		std::unique_lock held(lock);
		while (changed.wait(held, stop, [&] { return !queue.empty(); })) {
			sum += queue.front();
			queue.pop();
		}
	});
	for (int i = 1; i <= 1000; i++) {
		std::scoped_lock held(lock);
		queue.push(i);
		changed.notify_one();
	}
	for (bool empty = false; !empty; std::this_thread::yield()) {
		std::scoped_lock held(lock);
		empty = queue.empty();
	}
	consumer.request_stop();
	consumer.join();
	CHECK_EQ(sum, 500500);
}

static void futures()
{
	CHECK_EQ(std::async(std::launch::async, [] { return 6 * 7; }).get(), 42);
	CHECK_EQ(std::async(std::launch::deferred, [] { return 1; }).get(), 1);
	auto fails = std::async(std::launch::async, []() -> int { throw std::runtime_error("inside"); });
	try { (void)fails.get(); CHECK(false); } catch (const std::runtime_error &e) { CHECK_STR(e.what(), "inside"); }
	std::promise<int> broken;
	auto waiting = broken.get_future();
	{ std::promise<int> gone = std::move(broken); }
	try { (void)waiting.get(); CHECK(false); } catch (const std::future_error &e) { CHECK(e.code() == std::future_errc::broken_promise); }
	std::packaged_task<int(int)> task([](int n) { return n + 1; });
	auto result = task.get_future();
	std::thread(std::move(task), 8).join();
	CHECK_EQ(result.get(), 9);
}

static void meeting()
{
	std::latch ready(4);
	std::barrier turn(4);
	std::counting_semaphore<8> two(2);
	std::atomic<int> inside{0}, most{0}, rounds{0};
	std::once_flag once;
	int called = 0;
	std::vector<std::jthread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			ready.arrive_and_wait();
			std::call_once(once, [&] { called++; });
			for (int n = 0; n < 50; n++) {
				two.acquire();
				int now = ++inside;
				for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);)
					;
				--inside;
				two.release();
				turn.arrive_and_wait();
				rounds++;
			}
		});
	threads.clear();
	CHECK_EQ(called, 1);
	CHECK_EQ(rounds.load(), 200);
	CHECK(most >= 1 && most <= 2);
	std::atomic<int> value{0};
	std::jthread waker([&] { value = 1; value.notify_all(); });
	value.wait(0);
	CHECK_EQ(value.load(), 1);
}

int main()
{
	counting();
	queues();
	futures();
	meeting();
	std::timed_mutex timed;
	timed.lock();
	std::thread([&] { CHECK(!timed.try_lock_for(std::chrono::milliseconds(5))); }).join();
	timed.unlock();
	CHECK(std::thread::hardware_concurrency() >= 1);
	return check_done();
}
