// The event loop as the library sees it: timers, ticks, promises, and who called whom asynchronously.
'use strict';
const { loop, engine } = native;
const { bindings } = shared;
const nothing = () => {};

// Indices of async_hook_fields and async_id_fields.
const BEFORE = 1, AFTER = 2, STACK = 7, EXECUTION = 0, TRIGGER = 1, COUNTER = 2, DEFAULT = 3;
const fields = new Uint32Array(9);
const ids = new Float64Array(4);
ids[COUNTER] = 1;
ids[DEFAULT] = -1;
fields[6] = 1;
let wrap;
let hooks = {};

function push(id, trigger, resource) {
    const depth = fields[STACK];
    if (depth * 2 >= wrap.async_ids_stack.length) {
        const larger = new Float64Array(wrap.async_ids_stack.length * 3);
        larger.set(wrap.async_ids_stack);
        wrap.async_ids_stack = larger;
    }
    wrap.async_ids_stack[depth * 2] = ids[EXECUTION];
    wrap.async_ids_stack[depth * 2 + 1] = ids[TRIGGER];
    if (resource !== undefined) wrap.execution_async_resources[depth] = resource;
    fields[STACK] = depth + 1;
    ids[EXECUTION] = id;
    ids[TRIGGER] = trigger;
}
function pop() {
    if (fields[STACK] === 0) return false;
    const depth = --fields[STACK];
    ids[EXECUTION] = wrap.async_ids_stack[depth * 2];
    ids[TRIGGER] = wrap.async_ids_stack[depth * 2 + 1];
    wrap.execution_async_resources.length = depth;
    return depth > 0;
}

const providers = `NONE DIRHANDLE DNSCHANNEL ELDHISTOGRAM FILEHANDLE FILEHANDLECLOSEREQ BLOBREADER
    FSEVENTWRAP FSREQCALLBACK FSREQPROMISE GETADDRINFOREQWRAP GETNAMEINFOREQWRAP HEAPSNAPSHOT
    CPUHEAPPROFILE HTTPINCOMINGMESSAGE HTTPCLIENTREQUEST JSSTREAM JSUDPWRAP MESSAGEPORT PIPECONNECTWRAP
    PIPESERVERWRAP PIPEWRAP PROCESSWRAP PROMISE QUERYWRAP SHUTDOWNWRAP SIGNALWRAP STATWATCHER
    STREAMPIPE TCPCONNECTWRAP TCPSERVERWRAP TCPWRAP TTYWRAP UDPSENDWRAP UDPWRAP SIGINTWATCHDOG
    WORKER WORKERHEAPSNAPSHOT WRITEWRAP ZLIB`.split(/\s+/);
shared.providers = Object.fromEntries(providers.map((name, index) => [name, index]));

bindings.async_wrap = () => (wrap = {
    setupHooks(native) { hooks = native; },
    setCallbackTrampoline: nothing,
    pushAsyncContext: push,
    popAsyncContext: pop,
    executionAsyncResource: index => wrap.execution_async_resources[index],
    clearAsyncIdStack() {
        fields[STACK] = 0;
        ids[EXECUTION] = ids[TRIGGER] = 0;
        wrap.execution_async_resources.length = 0;
    },
    queueDestroyAsyncId: nothing,
    setPromiseHooks: (...list) => engine.promise_hooks(list[0], list[1], list[2], list[3]),
    getPromiseHooks: () => [undefined, undefined, undefined, undefined],
    registerDestroyHook: nothing,
    async_hook_fields: fields,
    async_id_fields: ids,
    execution_async_resources: [],
    async_ids_stack: new Float64Array(32),
    async_callback_trampoline: undefined,
    constants: {
        kInit: 0, kBefore, kAfter: 2, kDestroy: 3, kPromiseResolve: 4, kTotals: 5, kCheck: 6,
        kExecutionAsyncId: 0, kTriggerAsyncId: 1, kAsyncIdCounter: 2, kDefaultTriggerAsyncId: 3,
        kUsesExecutionAsyncResource: 8, kStackLength: 7,
    },
    Providers: shared.providers,
});
const kBefore = 1;

// All objects that the library takes for C++'s have this: a number, and who made it.
class AsyncWrap {
    #id; #trigger; #provider;
    constructor(provider) {
        this.#id = ++ids[COUNTER];
        this.#trigger = ids[DEFAULT] >= 0 ? ids[DEFAULT] : ids[EXECUTION];
        this.#provider = shared.providers[provider] ?? 0;
        if (fields[0] > 0) hooks.init?.(this.#id, provider, this.#trigger, this);
    }
    getAsyncId() { return this.#id; }
    getTriggerAsyncId() { return this.#trigger; }
    getProviderType() { return this.#provider; }
    asyncReset() { this.#id = ++ids[COUNTER]; }
}
// Private to us, so that nothing of it shows on the object.
shared.AsyncWrap = AsyncWrap;

// Calls a function of the library's for one of these objects, from the event loop.
shared.callback = (object, function_, ...args) => {
    if (typeof function_ !== 'function') return undefined;
    const id = AsyncWrap.prototype.getAsyncId.call(object);
    push(id, AsyncWrap.prototype.getTriggerAsyncId.call(object), object);
    if (fields[BEFORE] > 0) hooks.before?.(id);
    try {
        return function_.apply(object, args);
    } finally {
        if (fields[AFTER] > 0) hooks.after?.(id);
        pop();
    }
};

bindings.task_queue = () => {
    const tickInfo = new Uint8Array(2);
    loop.setup(5, tickInfo);
    shared.ticking = () => tickInfo[0] === 1 || tickInfo[1] === 1;
    return {
        tickInfo,
        enqueueMicrotask: engine.enqueue_microtask,
        runMicrotasks: engine.run_microtasks,
        setTickCallback: function_ => loop.setup(2, function_),
        promiseRejectEvents: {
            kPromiseRejectWithNoHandler: 0, kPromiseHandlerAddedAfterReject: 1,
            kPromiseRejectAfterResolved: 2, kPromiseResolveAfterResolved: 3,
        },
        setPromiseRejectCallback(function_) {
            engine.on_rejection((handled, promise, reason) =>
                function_(handled ? 1 : 0, promise, handled ? undefined : reason));
        },
    };
};

bindings.timers = () => {
    const immediateInfo = new Uint32Array(3);
    loop.setup(4, immediateInfo);
    return {
        immediateInfo,
        timerInfo: new Int32Array(1),
        timeoutInfo: new Int32Array(1),
        setupTimers(immediates, timers) {
            loop.setup(0, immediates);
            loop.setup(1, timers);
        },
        getLibuvNow: loop.now,
        scheduleTimer: loop.schedule_timer,
        toggleTimerRef: loop.timer_ref,
        toggleImmediateRef: loop.immediate_ref,
    };
};
