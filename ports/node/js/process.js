// The process object, and what it asks of the system.
'use strict';
const { os, engine, loop } = native;
const { bindings, binding, process } = shared;

shared.version = 'v20.19.2';

// A negative number that a function of ours returned is an errno: the exception for it.
shared.systemError = (number, call, path, dest) => {
    const code = native.fs.error_name(number);
    let message = `${code}: ${native.fs.error_text(number)}, ${call}`;
    if (path !== undefined && path !== '') message += ` '${path}'`;
    if (dest !== undefined && dest !== '') message += ` -> '${dest}'`;
    const error = new Error(message);
    error.errno = number;
    error.code = code;
    error.syscall = call;
    if (path !== undefined && path !== '') error.path = path;
    if (dest !== undefined && dest !== '') error.dest = dest;
    return error;
};
const checked = (result, call, path) => {
    if (typeof result === 'number' && result < 0) throw shared.systemError(result, call, path);
    return result;
};

// process.env: what is read and set is the process's own environment.
function environment() {
    const text = value => {
        if (typeof value === 'symbol') throw new TypeError('Cannot convert a Symbol value to a string');
        return String(value);
    };
    return new Proxy({}, {
        get: (target, name) => typeof name === 'symbol' ? target[name]
            : os.get_env(name) ?? (name in Object.prototype ? target[name] : undefined),
        set(target, name, value) {
            os.set_env(text(name), text(value));
            return true;
        },
        has: (target, name) => typeof name === 'string' && os.get_env(name) !== undefined,
        deleteProperty(target, name) {
            if (typeof name === 'string') os.set_env(name, undefined);
            return true;
        },
        ownKeys: () => [...new Set(os.env_names())],
        getOwnPropertyDescriptor(target, name) {
            const value = typeof name === 'string' ? os.get_env(name) : undefined;
            return value === undefined ? undefined
                : { value, writable: true, enumerable: true, configurable: true };
        },
        defineProperty(target, name, given) {
            if ('value' in given) {
                if (!given.configurable || !given.writable || !given.enumerable) {
                    const error = new TypeError("'process.env' only accepts a configurable, " +
                        'writable, and enumerable data descriptor');
                    error.code = 'ERR_INVALID_OBJECT_DEFINE_PROPERTY';
                    throw error;
                }
                os.set_env(text(name), text(given.value));
                return true;
            }
            const error = new TypeError("'process.env' does not accept an accessor(getter/setter) descriptor");
            error.code = 'ERR_INVALID_OBJECT_DEFINE_PROPERTY';
            throw error;
        },
    });
}

shared.describeProcess = () => {
    const { privateSymbols } = binding('util');
    process[privateSymbols.exit_info_private_symbol] = new Int32Array(3);
    const fixed = (name, value) => Object.defineProperty(process, name,
        { value, enumerable: true, configurable: true, writable: false });
    fixed('version', shared.version);
    fixed('versions', Object.freeze({
        node: shared.version.slice(1), quickjs: '0.16.2', uv: '1.46.0', modules: '115',
        ...('open' in native.zlib ? { zlib: native.zlib.version } : {}),
        ...('hash' in native.crypto ? { openssl: native.crypto.version } : {}),
        ...('open' in native.http ? { llhttp: native.http.version } : {}),
    }));
    fixed('arch', 'wasm32');
    fixed('platform', 'linux');
    fixed('release', { name: 'node', lts: 'Iron' });
    process.env = environment();
    process.title = 'node';
    Object.defineProperty(process, 'title', {
        get: () => os.title(), set: value => os.title(String(value)), enumerable: true, configurable: true,
    });
    const patch = target => {
        target.argv = [...shared.argv];
        target.execArgv = [...shared.execArgv];
        target.execPath = os.exec_path();
        Object.defineProperty(target, 'pid', { value: os.ids()[4], enumerable: true, configurable: true });
        Object.defineProperty(target, 'ppid', { get: () => os.ids()[5], enumerable: true, configurable: true });
        Object.defineProperty(target, 'debugPort', { value: 9229, writable: true, enumerable: true, configurable: true });
        fixed('versions', target.versions);
    };
    patch(process);
    shared.patchProcess = patch;
};

bindings.process_methods = () => {
    const hrtimeBuffer = new Uint32Array(3);
    const big = new BigInt64Array(hrtimeBuffer.buffer, 0, 1);
    let umask;
    return {
        hrtimeBuffer,
        hrtime() {
            const [seconds, nanoseconds] = os.hrtime_pair();
            hrtimeBuffer[0] = Math.floor(seconds / 2 ** 32);
            hrtimeBuffer[1] = seconds >>> 0;
            hrtimeBuffer[2] = nanoseconds;
        },
        hrtimeBigInt() {
            const [seconds, nanoseconds] = os.hrtime_pair();
            big[0] = BigInt(seconds) * 1000000000n + BigInt(nanoseconds);
        },
        _debugProcess() {}, _debugEnd() {},
        abort: os.abort,
        causeSegfault: os.abort,
        chdir: path => void checked(os.chdir(path), 'chdir', path),
        cwd: () => checked(os.cwd(), 'uv_cwd'),
        umask: mask => os.umask(mask),
        memoryUsage(into) {
            const [size, used, buffers] = engine.memory();
            into.set([os.memory()[0], size, used, buffers, buffers]);
        },
        constrainedMemory: () => os.memory()[4],
        availableMemory: () => os.memory()[3],
        rss: () => os.memory()[0],
        cpuUsage: into => into.set(os.usage().slice(0, 2)),
        resourceUsage: into => into.set(os.usage()),
        _getActiveRequests: () => [],
        _getActiveHandles: () => [...shared.openHandles].map(handle => handle[binding('symbols').owner_symbol] ?? handle.owner ?? handle),
        getActiveResourcesInfo: () => [...shared.openHandles].map(handle => handle.constructor.name),
        _kill: (pid, signal) => native.spawn.kill(pid, signal),
        _rawDebug: text => void os.write_raw(2, `${text}\n`),
        dlopen(module, name) {
            const error = new Error(`${name}: modules of native code do not load in a cage`);
            error.code = 'ERR_DLOPEN_FAILED';
            throw error;
        },
        reallyExit: code => os.exit(code ?? 0),
        uptime() {
            loop.update_now();
            return loop.now() / 1000;
        },
        patchProcessObject: target => shared.patchProcess(target),
        loadEnvFile(path = '.env') {
            const bytes = checked(native.fs.read_file(path, 0), 'open', path);
            const found = shared.parseEnv(native.buffer.toString(bytes, 1));
            for (const name in found) if (os.get_env(name) === undefined) os.set_env(name, found[name]);
        },
        setEmitWarningSync() {},
        resetStdioForTesting() {},
    };
};

bindings.credentials = () => {
    const setId = (which, name) => id => checked(os.set_id(which, id), name);
    return {
        safeGetenv: os.get_env,
        implementsPosixCredentials: true,
        getuid: () => os.ids()[0], geteuid: () => os.ids()[1],
        getgid: () => os.ids()[2], getegid: () => os.ids()[3],
        getgroups: os.groups,
        initgroups: (user, group) => checked(os.init_groups(user, group), 'initgroups'),
        setgroups: list => checked(os.set_groups(list), 'setgroups'),
        setuid: setId(0, 'setuid'), seteuid: setId(1, 'seteuid'),
        setgid: setId(2, 'setgid'), setegid: setId(3, 'setegid'),
    };
};

bindings.performance = () => {
    const names = ['TIME_ORIGIN_TIMESTAMP', 'TIME_ORIGIN', 'ENVIRONMENT', 'NODE_START', 'V8_START',
        'LOOP_START', 'LOOP_EXIT', 'BOOTSTRAP_COMPLETE'];
    const milestones = new Float64Array(8);
    const began = os.hrtime();
    milestones.fill(began);
    milestones[0] = Date.now() * 1000;
    milestones[5] = milestones[6] = -1;
    class Histogram {
        #values = [];
        record(value) { this.#values.push(Number(value)); }
        recordDelta() {}
        count() { return this.#values.length; }
        countBigInt() { return BigInt(this.#values.length); }
        min() { return this.#values.length ? Math.min(...this.#values) : 9223372036854776000; }
        max() { return this.#values.length ? Math.max(...this.#values) : 0; }
        mean() { return this.#values.length ? this.#values.reduce((a, b) => a + b) / this.#values.length : NaN; }
        stddev() {
            const mean = this.mean();
            return Math.sqrt(this.#values.reduce((a, b) => a + (b - mean) ** 2, 0) / this.#values.length);
        }
        minBigInt() { return BigInt(this.min()); }
        maxBigInt() { return BigInt(this.max()); }
        exceeds() { return 0; }
        exceedsBigInt() { return 0n; }
        percentile(p) {
            const sorted = [...this.#values].sort((a, b) => a - b);
            return sorted[Math.max(0, Math.ceil(p / 100 * sorted.length) - 1)] ?? 0;
        }
        percentileBigInt(p) { return BigInt(this.percentile(p)); }
        percentiles(map) { for (const p of [0, 50, 75, 100]) map.set(p, this.percentile(p)); }
        percentilesBigInt(map) { for (const p of [0, 50, 75, 100]) map.set(p, this.percentileBigInt(p)); }
        reset() { this.#values = []; }
        start() {} stop() {}
    }
    return {
        Histogram, milestones, observerCounts: new Uint32Array(8),
        createELDHistogram: () => new Histogram(),
        setupObservers() {}, installGarbageCollectionTracking() {}, removeGarbageCollectionTracking() {},
        notify() {}, loopIdleTime: () => 0, markBootstrapComplete() { milestones[7] = os.hrtime(); },
        uvMetricsInfo: () => [0, 0, 0],
        now: () => (os.hrtime() - began) / 1e6,
        getTimeOrigin: () => began / 1e6, getTimeOriginTimestamp: () => milestones[0] / 1000,
        constants: {
            NODE_PERFORMANCE_ENTRY_TYPE_GC: 0, NODE_PERFORMANCE_ENTRY_TYPE_HTTP: 1,
            NODE_PERFORMANCE_ENTRY_TYPE_HTTP2: 2, NODE_PERFORMANCE_ENTRY_TYPE_NET: 3,
            NODE_PERFORMANCE_ENTRY_TYPE_DNS: 4, NODE_PERFORMANCE_GC_MAJOR: 4,
            NODE_PERFORMANCE_GC_MINOR: 1, NODE_PERFORMANCE_GC_INCREMENTAL: 8,
            NODE_PERFORMANCE_GC_WEAKCB: 16, NODE_PERFORMANCE_GC_FLAGS_NO: 0,
            ...Object.fromEntries(names.map((name, index) =>
                [`NODE_PERFORMANCE_MILESTONE_${name}`, index])),
        },
    };
};
