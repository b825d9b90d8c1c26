// Copies of values, and messages between ports of the same thread. Threads of workers are not there.
'use strict';
const { bindings, binding, AsyncWrap } = shared;
const { engine } = native;
const { classes, class_id: kind } = engine;

// Sets a property of a copy: one of the name __proto__ is data, and never the copy's prototype.
shared.put = (object, key, value) => {
    if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
    else object[key] = value;
};

function cannot(value) {
    const { DOMException } = shared.perContext;
    const name = typeof value === 'function' ? value.toString() : typeof value === 'symbol' ? String(value)
        : '#<Object>';
    return new DOMException(`${name} could not be cloned.`, 'DataCloneError');
}

const errorNames = new Set(['Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError']);
// A copy as the algorithm of structured clones makes it. Values in `moved` go over.
function clone(value, seen, moved) {
    if (typeof value === 'function' || typeof value === 'symbol') throw cannot(value);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const { privateSymbols } = binding('util');
    const symbols = binding('symbols');
    const keep = copy => (seen.set(value, copy), copy);
    if (moved.has(value)) return keep(moved.get(value));
    const again = inner => clone(inner, seen, moved);
    switch (kind(value)) {
    case classes.NUMBER: case classes.STRING: case classes.BOOLEAN: case classes.BIG_INT:
        return keep(Object(value.valueOf()));
    case classes.SYMBOL: throw cannot(value.valueOf());
    case classes.DATE: return keep(new Date(value.getTime()));
    case classes.REGEXP: return keep(new RegExp(value.source, value.flags));
    case classes.ARRAY_BUFFER: return keep(value.slice(0));
    case classes.SHARED_ARRAY_BUFFER: return keep(value);
    case classes.DATAVIEW:
        return keep(new DataView(again(value.buffer), value.byteOffset, value.byteLength));
    case classes.MAP: {
        const copy = keep(new Map());
        for (const [key, item] of [...value]) copy.set(again(key), again(item));
        return copy;
    }
    case classes.SET: {
        const copy = keep(new Set());
        for (const item of [...value]) copy.add(again(item));
        return copy;
    }
    case classes.ERROR: {
        const name = errorNames.has(value.name) ? value.name : 'Error';
        const copy = keep(new globalThis[name](value.message));
        Object.defineProperty(copy, 'stack', { value: value.stack, writable: true, configurable: true });
        if (Object.hasOwn(value, 'cause'))
            Object.defineProperty(copy, 'cause', { value: again(value.cause), writable: true, configurable: true });
        return copy;
    }
    case classes.PROMISE: case classes.WEAKMAP: case classes.WEAKSET: case classes.GENERATOR:
    case classes.PROXY:
        if (kind(value) !== classes.PROXY) throw cannot(value);
    }
    if (ArrayBuffer.isView(value)) {
        const copy = again(value.buffer);
        const type = Object.getPrototypeOf(Object.getPrototypeOf(value)) === Object.getPrototypeOf(Uint8Array.prototype)
            ? value.constructor : Uint8Array;
        return keep(new type(copy, value.byteOffset, value.length));
    }
    const custom = value[symbols.messaging_clone_symbol];
    if (typeof custom === 'function') {
        const { data, deserializeInfo } = custom.call(value);
        const made = deserializers(deserializeInfo);
        keep(made);
        made[symbols.messaging_deserialize_symbol](again(data));
        return made;
    }
    if (value instanceof AsyncWrap || value instanceof MessagePort) throw cannot(value);
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) shared.put(copy, key, again(value[key]));
    return copy;
}
let deserializers = () => { throw new Error('nothing deserializes this'); };

function structuredClone(value, options) {
    if (arguments.length === 0) {
        const { codes } = shared.require('internal/errors');
        throw new codes.ERR_MISSING_ARGS('The value argument');
    }
    const list = Array.isArray(options) ? options : [...(options?.transfer ?? [])];
    const moved = new Map();
    for (const each of list) {
        if (kind(each) === classes.ARRAY_BUFFER) {
            if (each.detached || moved.has(each)) throw cannot(each);
            moved.set(each, null);
        } else if (each instanceof MessagePort) {
            moved.set(each, each);
        } else if (typeof each?.[binding('symbols').messaging_transfer_symbol] !== 'function') {
            throw cannot(each);
        }
    }
    for (const [buffer, to] of moved) if (to === null) moved.set(buffer, buffer.slice(0));
    const copy = clone(value, new Map(), moved);
    for (const [buffer] of moved) if (kind(buffer) === classes.ARRAY_BUFFER) engine.detach(buffer);
    return copy;
}

// The library's port is an empty object; where its messages wait is in here.
const states = new WeakMap();
class Base {}
function MessagePort() {
    const { codes } = shared.require('internal/errors');
    throw new codes.ERR_CONSTRUCT_CALL_INVALID();
}
Object.setPrototypeOf(MessagePort.prototype, Base.prototype);

function newPort() {
    const port = Object.create(MessagePort.prototype);
    states.set(port, { other: null, queue: [], started: false, held: false, closed: false, wake: null });
    const { oninit } = binding('symbols');
    if (typeof port[oninit] === 'function') port[oninit]();
    return port;
}
// A timer keeps the program alive while a port is held.
function hold(state) {
    const wanted = state.held && !state.closed && state.started;
    const { setInterval, clearInterval } = shared.require('timers');
    if (wanted && !state.wake) state.wake = setInterval(() => {}, 2 ** 30);
    else if (!wanted && state.wake) clearInterval(state.wake), state.wake = null;
}
function deliver(port) {
    const state = states.get(port);
    if (state.scheduled || !state.started) return;
    state.scheduled = true;
    shared.require('timers').setImmediate(() => {
        state.scheduled = false;
        drain(port);
    });
}
function drain(port) {
    const state = states.get(port);
    while (state.started && state.queue.length) {
        const entry = state.queue.shift();
        if (entry.close) {
            finish(port);
            return;
        }
        shared.perContext.emitMessage.call(port, entry.message, entry.ports, 'message');
    }
}
function finish(port) {
    const state = states.get(port);
    if (state.closed) return;
    state.closed = true;
    hold(state);
    const close = port[binding('symbols').handle_onclose];
    if (typeof close === 'function') close.call(port);
}
Object.assign(MessagePort.prototype, {
    postMessage(message, options) {
        const state = states.get(this);
        if (arguments.length === 0) {
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_MISSING_ARGS('The message argument');
        }
        const copy = structuredClone(message, options);
        const list = Array.isArray(options) ? options : [...(options?.transfer ?? [])];
        if (!state || state.closed || !state.other) return;
        states.get(state.other).queue.push({ message: copy, ports: list.filter(each => each instanceof MessagePort) });
        deliver(state.other);
    },
    start() {
        const state = states.get(this);
        if (!state) return;
        state.started = true;
        hold(state);
        if (state.queue.length) deliver(this);
    },
    drain() { drain(this); },
    close() {
        const state = states.get(this);
        if (!state || state.closed) return;
        const other = state.other && states.get(state.other);
        if (other && !other.closed) {
            other.queue.push({ close: true });
            other.started = true;
            deliver(state.other);
        }
        shared.require('timers').setImmediate(() => finish(this));
    },
    ref() { const state = states.get(this); state.held = true; hold(state); },
    unref() { const state = states.get(this); state.held = false; hold(state); },
    hasRef() { return Boolean(states.get(this)?.wake); },
});
for (const name of ['postMessage', 'start', 'close', 'drain', 'ref', 'unref', 'hasRef'])
    Object.defineProperty(MessagePort.prototype, name, { enumerable: false });

function MessageChannel() {
    if (!new.target) {
        const { codes } = shared.require('internal/errors');
        throw new codes.ERR_CONSTRUCT_CALL_REQUIRED();
    }
    this.port1 = newPort();
    this.port2 = newPort();
    states.get(this.port1).other = this.port2;
    states.get(this.port2).other = this.port1;
}

bindings.messaging = () => ({
    MessagePort, MessageChannel, structuredClone,
    JSTransferable: class JSTransferable {},
    get DOMException() { return shared.perContext.DOMException; },
    setDeserializerCreateObjectFunction(function_) { deserializers = function_; },
    stopMessagePort(port) {
        const state = states.get(port);
        if (state) state.started = false, hold(state);
    },
    checkMessagePort: port => states.has(port),
    drainMessagePort: drain,
    receiveMessageOnPort(port) {
        const state = states.get(port);
        if (!state) {
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_INVALID_ARG_TYPE('port', 'MessagePort', port);
        }
        const entry = state.queue.find(each => !each.close);
        if (!entry) return binding('symbols').no_message_symbol;
        state.queue.splice(state.queue.indexOf(entry), 1);
        return entry.message;
    },
    moveMessagePortToContext: port => port,
    broadcastChannel() { return newPort(); },
    exposeLazyDOMExceptionProperty(object) {
        Object.defineProperty(object, 'DOMException', { configurable: true, writable: true,
            enumerable: false, value: shared.perContext.DOMException });
    },
});
bindings.worker = () => ({
    isMainThread: true, isInternalThread: false, ownsProcessState: true, threadId: 0, resourceLimits: new Float64Array(4),
    getEnvMessagePort: () => undefined,
    kMaxYoungGenerationSizeMb: 0, kMaxOldGenerationSizeMb: 1, kCodeRangeSizeMb: 2, kStackSizeMb: 3,
    kTotalResourceLimitCount: 4,
    Worker: class Worker {
        constructor() { throw new Error('threads of JavaScript (worker_threads) are not there in this node'); }
    },
});

bindings.blob = () => {
    const urls = new Map();
    const join = list => {
        let size = 0;
        for (const part of list) size += part.byteLength;
        const whole = new Uint8Array(size);
        size = 0;
        for (const part of list) {
            whole.set(new Uint8Array(part.buffer ?? part, part.byteOffset ?? 0, part.byteLength), size);
            size += part.byteLength;
        }
        return whole;
    };
    class Handle {
        constructor(bytes) { this.bytes = bytes; }
        getReader() {
            let rest = this.bytes;
            return {
                pull(done) {
                    const part = rest;
                    rest = null;
                    queueMicrotask(() => part?.byteLength
                        ? done(1, part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength), undefined)
                        : done(0, undefined, undefined));
                },
            };
        }
        slice(start, end) { return new Handle(this.bytes.slice(start, end)); }
    }
    return {
        createBlob: (sources, size) => new Handle(join(sources.map(each => each instanceof Handle ? each.bytes
            : each[0] instanceof Handle ? each[0].bytes : each))),
        concat: list => join(list).buffer,
        storeDataObject: (id, handle, size, type) => { urls.set(id, [handle, size, type]); },
        getDataObject: id => urls.get(id),
        revokeObjectURL: href => { urls.delete(href.split(':').at(-1)); },
        createBlobFromFilePath(path) {
            const bytes = native.fs.read_file(path, 0);
            if (typeof bytes === 'number') return undefined;
            return [new Handle(new Uint8Array(bytes)), bytes.byteLength];
        },
    };
};
