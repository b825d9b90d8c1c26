// The event loop: its phases, and how it calls JavaScript.
#include <stdio.h>
#include <stdlib.h>

#include "node.h"

// Fields of what task_queue and timers share with the library.
enum { HAS_TICK, HAS_REJECTION };
enum { COUNT, REFERENCED, OUTSTANDING };

static void report(struct env *env)
{
	JSContext *ctx = env->ctx;
	JSValue error = JS_GetException(ctx);
	JSValue result = JS_Call(ctx, env->uncaught, JS_UNDEFINED, 1, (JSValueConst *)&error);
	if (JS_IsException(result)) {
		JSValue second = JS_GetException(ctx);
		const char *text = JS_ToCString(ctx, second);
		JSValue stack = JS_GetPropertyStr(ctx, second, "stack");
		const char *where = JS_ToCString(ctx, stack);
		fprintf(
		    stderr, "node: error while an error was reported: %s\n%s\n", text ? text : "", where ? where : "");
		exit(7);
	}
	JS_FreeValue(ctx, result);
	JS_FreeValue(ctx, error);
}

void run_jobs(struct env *env)
{
	JSContext *ctx;
	int done;
	while ((done = JS_ExecutePendingJob(JS_GetRuntime(env->ctx), &ctx)))
		if (done < 0) {
			if (ctx != env->ctx)
				JS_Throw(env->ctx, JS_GetException(ctx));
			report(env);
		}
}

static bool flag(struct env *env, JSValueConst array, int which)
{
	size_t length;
	uint8_t *data = bytes_of(env->ctx, array, &length);
	return data && (size_t)which < length && data[which];
}

static uint32_t word(struct env *env, JSValueConst array, int which)
{
	size_t length;
	uint8_t *data = bytes_of(env->ctx, array, &length);
	return data && (which + 1) * 4u <= length ? ((uint32_t *)data)[which] : 0;
}

// Does the work that waits until the program's code has returned.
static void finish(struct env *env)
{
	if (!flag(env, env->tick_info, HAS_TICK))
		run_jobs(env);
	if (flag(env, env->tick_info, HAS_TICK) || flag(env, env->tick_info, HAS_REJECTION)) {
		JSValue result = JS_Call(env->ctx, env->ticks, JS_UNDEFINED, 0, NULL);
		if (JS_IsException(result))
			report(env);
		JS_FreeValue(env->ctx, result);
	}
}

void call_from_loop(struct env *env, JSValueConst function, int argc, JSValue *argv)
{
	JSContext *ctx = env->ctx;
	bool failed = false;
	env->depth++;
	if (JS_IsFunction(ctx, function)) {
		JSValue kept = JS_DupValue(ctx, function);
		JSValue result = JS_Call(ctx, kept, JS_UNDEFINED, argc, (JSValueConst *)argv);
		if ((failed = JS_IsException(result)))
			report(env);
		JS_FreeValue(ctx, result);
		JS_FreeValue(ctx, kept);
	}
	for (int i = 0; i < argc; i++)
		JS_FreeValue(ctx, argv[i]);
	// The library has arranged for the rest when an exception was handled.
	if (--env->depth == 0 && !failed)
		finish(env);
}

static void on_timer(uv_timer_t *timer);

static void schedule(struct env *env, double next)
{
	uv_handle_t *handle = (uv_handle_t *)&env->timer;
	double now = uv_now(&env->loop) - env->began, when = next < 0 ? -next : next;
	uv_timer_start(&env->timer, on_timer, when > now + 1 ? when - now : 1, 0);
	if (next > 0)
		uv_ref(handle);
	else
		uv_unref(handle);
}

// Runs the timers that are due; the library says when the next one is, and with a minus that it
// does not keep the program alive. It is called again after an exception.
static void on_timer(uv_timer_t *timer)
{
	struct env *env = timer->data;
	JSContext *ctx = env->ctx;
	JSValue next;
	for (;;) {
		JSValue now = JS_NewInt64(ctx, uv_now(&env->loop) - env->began);
		env->depth++;
		next = JS_Call(ctx, env->timers, JS_UNDEFINED, 1, (JSValueConst *)&now);
		env->depth--;
		if (!JS_IsException(next))
			break;
		report(env);
	}
	double when = number_of(ctx, next);
	if (when != 0)
		schedule(env, when);
	finish(env);
}

static void on_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void on_check(uv_check_t *check)
{
	struct env *env = check->data;
	if (!word(env, env->immediate_info, COUNT))
		return;
	do {
		call_from_loop(env, env->immediates, 0, NULL);
	} while (word(env, env->immediate_info, OUTSTANDING));
	if (!word(env, env->immediate_info, REFERENCED))
		uv_idle_stop(&env->idle);
}

static JSValue now(ARGS)
{
	struct env *env = env_of(ctx);
	return JS_NewInt64(ctx, uv_now(&env->loop) - env->began);
}

static JSValue update_now(ARGS)
{
	uv_update_time(&env_of(ctx)->loop);
	return JS_UNDEFINED;
}

static JSValue schedule_timer(ARGS)
{
	double delay = number_of(ctx, argv[0]);
	uv_timer_start(&env_of(ctx)->timer, on_timer, delay >= 1 ? delay : 1, 0);
	return JS_UNDEFINED;
}

static JSValue timer_ref(ARGS)
{
	uv_handle_t *handle = (uv_handle_t *)&env_of(ctx)->timer;
	if (JS_ToBool(ctx, argv[0]))
		uv_ref(handle);
	else
		uv_unref(handle);
	return JS_UNDEFINED;
}

static JSValue immediate_ref(ARGS)
{
	struct env *env = env_of(ctx);
	if (JS_ToBool(ctx, argv[0]))
		uv_idle_start(&env->idle, on_idle);
	else
		uv_idle_stop(&env->idle);
	return JS_UNDEFINED;
}

// setup(which, value)
static JSValue setup(ARGS)
{
	struct env *env = env_of(ctx);
	JSValue *places[] = { &env->immediates, &env->timers, &env->ticks, &env->uncaught, &env->immediate_info,
		&env->tick_info };
	unsigned which = int_of(ctx, argv[0]);
	if (which >= sizeof places / sizeof *places)
		return JS_ThrowRangeError(ctx, "setup: no such place");
	JS_FreeValue(ctx, *places[which]);
	*places[which] = JS_DupValue(ctx, argv[1]);
	return JS_UNDEFINED;
}

// run(): until nothing is left that keeps the program alive.
static JSValue run(ARGS)
{
	struct env *env = env_of(ctx);
	int depth = env->depth;
	env->depth = 0;
	finish(env);
	uv_run(&env->loop, UV_RUN_DEFAULT);
	env->depth = depth;
	return JS_NewBool(ctx, uv_loop_alive(&env->loop));
}

static JSValue alive(ARGS)
{
	return JS_NewBool(ctx, uv_loop_alive(&env_of(ctx)->loop));
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(now, 0),
	FUNCTION(update_now, 0),
	FUNCTION(schedule_timer, 1),
	FUNCTION(timer_ref, 1),
	FUNCTION(immediate_ref, 1),
	FUNCTION(setup, 2),
	FUNCTION(run, 0),
	FUNCTION(alive, 0),
};

JSValue loop_functions(JSContext *ctx)
{
	struct env *env = env_of(ctx);
	uv_timer_init(&env->loop, &env->timer);
	uv_check_init(&env->loop, &env->check);
	uv_idle_init(&env->loop, &env->idle);
	env->timer.data = env->check.data = env->idle.data = env;
	uv_unref((uv_handle_t *)&env->timer);
	uv_check_start(&env->check, on_check);
	uv_unref((uv_handle_t *)&env->check);
	env->began = uv_now(&env->loop);
	env->immediates = env->timers = env->ticks = env->uncaught = JS_UNDEFINED;
	env->immediate_info = env->tick_info = JS_UNDEFINED;
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
