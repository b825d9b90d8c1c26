// Processes.
'use strict';
const { spawn, handles } = native;
const { bindings, AsyncWrap } = shared;
const of = shared.nativeOf;
const signalNames = new Map(Object.entries(native.constants.signals).reverse().map(([name, n]) => [n, name]));

const environment = pairs => pairs ?? native.os.env_names().map(name => `${name}=${native.os.get_env(name)}`);
const described = options => ({
    file: String(options.file), args: options.args ?? [options.file], env: environment(options.envPairs),
    cwd: options.cwd === undefined || options.cwd === null ? undefined : String(options.cwd),
    detached: Boolean(options.detached),
});

// A program for another user cannot be started: it would have this one's rights.
const otherUser = ({ uid, gid }) => {
    const [, user, , group] = native.os.ids();
    return uid !== undefined && uid !== null && uid >>> 0 !== user >>> 0 ||
        gid !== undefined && gid !== null && gid >>> 0 !== group >>> 0;
};
const notSupported = -native.constants.errno.EOPNOTSUPP;

class Process extends AsyncWrap {
    #pid = 0; #held = true; #ended = false;
    constructor() { super('PROCESSWRAP'); }
    get pid() { return this.#pid || undefined; }
    spawn(options) {
        if (otherUser(options)) return notSupported;
        const given = [], ours = [];
        for (const entry of options.stdio ?? []) {
            if (entry.type === 'ignore') {
                given.push(-1);
            } else if (entry.type === 'pipe' || entry.type === 'overlapped') {
                const pair = spawn.pair();
                if (typeof pair === 'number') return pair;
                ours.push([entry.handle, ...pair]);
                given.push(pair[1]);
            } else if (entry.type === 'wrap') {
                given.push(handles.descriptor(of(entry.handle)));
            } else {
                given.push(entry.fd);
            }
        }
        const pid = spawn.spawn(described(options), given, (status, signal) => {
            this.#ended = true;
            shared.callback(this, this.onexit, status, signal ? signalNames.get(signal) ?? 'SIGUNKNOWN' : '');
        });
        for (const [handle, mine, theirs] of ours) {
            spawn.close(theirs);
            // Opened even if nothing was started: the library reads its end.
            handles.open(of(handle), mine);
        }
        if (pid < 0) return pid;
        this.#pid = pid;
        return 0;
    }
    kill(signal) { return this.#ended || !this.#pid ? -3 : spawn.kill(this.#pid, signal); }
    close(done) { if (typeof done === 'function') shared.later(() => shared.callback(this, done)); }
    ref() { this.#held = true; spawn.hold_child(this.#pid, true); }
    unref() { this.#held = false; spawn.hold_child(this.#pid, false); }
    hasRef() { return this.#held && !this.#ended; }
}
bindings.process_wrap = () => ({ Process });

bindings.spawn_sync = () => ({
    spawn(options) {
        if (otherUser(options)) return { pid: 0, status: null, signal: null, output: null, error: notSupported };
        const entries = (options.stdio ?? []).map(entry =>
            entry.type === 'ignore' ? -1
                : entry.type === 'pipe' ? (entry.input?.byteLength ? entry.input : null)
                    : entry.fd ?? -1);
        const [pid, status, signal, problem, outputs] = spawn.run(described(options), entries,
            options.timeout ?? 0, options.maxBuffer ?? Infinity, options.killSignal || 15);
        const { Buffer } = shared.require('buffer');
        const result = {
            pid: pid > 0 ? pid : 0,
            status: pid < 0 || signal ? null : status,
            signal: signal ? signalNames.get(signal) ?? null : null,
            output: pid < 0 ? null : outputs.map((data, index) =>
                data && options.stdio[index].writable !== false && !(options.stdio[index].readable && index === 0)
                    ? Buffer.from(data.buffer) : null),
        };
        if (problem) result.error = problem;
        return result;
    },
});
