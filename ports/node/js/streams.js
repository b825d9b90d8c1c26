// Handles that are streams: sockets, pipes, terminals.
'use strict';
const { handles } = native;
const { bindings, binding, AsyncWrap } = shared;

const state = new Int32Array(4);
const READ = 0, OFFSET = 1, WRITTEN = 2, ASYNC = 3;
shared.streamState = state;
shared.openHandles = new Set();

// All handles of the event loop have this.
class HandleWrap extends AsyncWrap {
    #handle;
    constructor(provider, handle) {
        super(provider);
        this.#handle = handle;
        shared.openHandles.add(this);
    }
    static native(wrap) { return wrap.#handle; }
    close(done) {
        const closing = handles.close(this.#handle, () => {
            shared.openHandles.delete(this);
            const { handle_onclose } = binding('symbols');
            const after = this[handle_onclose];
            if (typeof after === 'function') {
                delete this[handle_onclose];
                shared.callback(this, after);
            }
        });
        if (closing && typeof done === 'function') this[binding('symbols').handle_onclose] = done;
    }
    hasRef() { return handles.has_ref(this.#handle); }
    ref() { handles.hold(this.#handle, true); }
    unref() { handles.hold(this.#handle, false); }
}
Object.defineProperty(HandleWrap.prototype, 'owner', {
    configurable: true,
    get() { return this[binding('symbols').owner_symbol]; },
    set(value) { this[binding('symbols').owner_symbol] = value; },
});
const of = HandleWrap.native;
shared.HandleWrap = HandleWrap;
shared.nativeOf = of;

class LibuvStreamWrap extends HandleWrap {
    #read = 0; #written = 0; #user; #onread;
    get bytesRead() { return this.#read; }
    get bytesWritten() { return this.#written; }
    get fd() { return handles.descriptor(of(this)); }
    get isStreamBase() { return true; }
    get writeQueueSize() { return Math.max(0, handles.pending(of(this))); }
    get onread() { return this.#onread; }
    set onread(function_) { this.#onread = function_; }
    useUserBuffer(buffer) { this.#user = buffer; }
    setBlocking(on) { return handles.set_blocking(of(this), on); }
    readStart() {
        return handles.read_start(of(this), (count, data, kind) => this.#received(count, data, kind));
    }
    readStop() { return handles.read_stop(of(this)); }
    #received(count, data, kind) {
        if (kind !== undefined) this.pendingHandle = this.#accept(kind);
        if (count > 0) this.#read += count;
        if (this.#consumer && this.#consumer(count, data)) return;
        if (this.#user && count > 0) {
            const bytes = new Uint8Array(data), user = this.#user;
            for (let at = 0; at < bytes.length;) {
                const part = bytes.subarray(at, at + user.byteLength);
                new Uint8Array(user.buffer, user.byteOffset, user.byteLength).set(part);
                at += part.length;
                state[READ] = part.length;
                state[OFFSET] = 0;
                const next = shared.callback(this, this.#onread, undefined);
                if (next !== undefined) this.#user = next;
            }
            return;
        }
        state[READ] = count;
        state[OFFSET] = 0;
        shared.callback(this, this.#onread, data);
    }
    #consumer;
    static consume(stream, function_) { stream.#consumer = function_; }
    #accept(kind) {
        const { TCP } = binding('tcp_wrap'), { Pipe } = binding('pipe_wrap');
        const client = kind === 'tcp' ? new TCP(0) : kind === 'pipe' ? new Pipe(0) : undefined;
        if (client) handles.accept(of(this), of(client));
        return client;
    }
    #write(request, list, sent) {
        let size = 0;
        for (const piece of list) size += piece.byteLength;
        const result = handles.write(of(this), list, status => {
            if (typeof request.oncomplete === 'function')
                shared.callback(request, request.oncomplete, status, this, undefined);
        }, sent && of(sent));
        state[WRITTEN] = size;
        state[ASYNC] = result > 0 ? 1 : 0;
        this.#written += size;
        return result < 0 ? result : 0;
    }
    #text(request, text, encoding, sent) {
        return this.#write(request, [native.buffer.fromString(text, encoding)], sent);
    }
    writeBuffer(request, buffer) { return this.#write(request, [buffer]); }
    writeUtf8String(request, text, sent) { return this.#text(request, text, 1, sent); }
    writeAsciiString(request, text, sent) { return this.#text(request, text, 4, sent); }
    writeLatin1String(request, text, sent) { return this.#text(request, text, 4, sent); }
    writeUcs2String(request, text, sent) { return this.#text(request, text, 3, sent); }
    writev(request, chunks, allBuffers) {
        if (allBuffers) return this.#write(request, chunks);
        const { Buffer } = shared.require('buffer'), list = [];
        for (let i = 0; i < chunks.length; i += 2)
            list.push(typeof chunks[i] === 'string' ? Buffer.from(chunks[i], chunks[i + 1]) : chunks[i]);
        return this.#write(request, list);
    }
    shutdown(request) {
        return handles.shutdown(of(this), status => {
            shared.callback(request, request.oncomplete, status);
        });
    }
}
shared.LibuvStreamWrap = LibuvStreamWrap;

class WriteWrap extends AsyncWrap { constructor() { super('WRITEWRAP'); } }
class ShutdownWrap extends AsyncWrap { constructor() { super('SHUTDOWNWRAP'); } }
bindings.stream_wrap = () => ({
    kReadBytesOrError: READ, kArrayBufferOffset: OFFSET, kBytesWritten: WRITTEN,
    kLastWriteWasAsync: ASYNC, streamBaseState: state, WriteWrap, ShutdownWrap, LibuvStreamWrap,
});

// Sockets that listen and connect.
class ConnectionWrap extends LibuvStreamWrap {
    listen(backlog) {
        return handles.listen(of(this), backlog, status => {
            let client;
            if (!status) {
                client = new this.constructor(0);
                const failed = handles.accept(of(this), of(client));
                if (failed) return;
            }
            shared.callback(this, this.onconnection, status, client);
        });
    }
    open(fd) { return handles.open(of(this), fd); }
}
const connected = (stream, request) => status => {
    shared.callback(request, request.oncomplete, status, stream, request, true, true);
};
const nameInto = (stream, into, peer) => {
    const name = handles.stream_name(of(stream), peer);
    if (typeof name === 'number') return name;
    Object.assign(into, typeof name === 'string' ? { address: name } : name);
    return 0;
};

class TCP extends ConnectionWrap {
    constructor(type) {
        super(type === 1 ? 'TCPSERVERWRAP' : 'TCPWRAP', handles.stream_new('tcp'));
    }
    bind(address, port) { return handles.tcp_bind(of(this), address, port, 0); }
    bind6(address, port, flags) { return handles.tcp_bind(of(this), address, port, flags); }
    connect(request, address, port) {
        return handles.tcp_connect(of(this), address, port, connected(this, request));
    }
    connect6(request, address, port) { return this.connect(request, address, port); }
    getsockname(into) { return nameInto(this, into, false); }
    getpeername(into) { return nameInto(this, into, true); }
    setNoDelay(on) { return handles.tcp_option(of(this), 'nodelay', on, 0); }
    setKeepAlive(on, delay) { return handles.tcp_option(of(this), 'keepalive', on, delay); }
    reset(done) {
        this.close(done);
        return 0;
    }
}
class TCPConnectWrap extends AsyncWrap { constructor() { super('TCPCONNECTWRAP'); } }
bindings.tcp_wrap = () => ({ TCP, TCPConnectWrap, constants: { SOCKET: 0, SERVER: 1, UV_TCP_IPV6ONLY: 1 } });

class Pipe extends ConnectionWrap {
    constructor(type) {
        super(type === 1 ? 'PIPESERVERWRAP' : 'PIPEWRAP', handles.stream_new('pipe', type === 2));
    }
    bind(name) { return handles.pipe_bind(of(this), name); }
    connect(request, name) {
        return handles.pipe_connect(of(this), name, connected(this, request));
    }
    fchmod(mode) { return 0; }
}
class PipeConnectWrap extends AsyncWrap { constructor() { super('PIPECONNECTWRAP'); } }
bindings.pipe_wrap = () => ({
    Pipe, PipeConnectWrap,
    constants: { SOCKET: 0, SERVER: 1, IPC: 2, UV_READABLE: 1, UV_WRITABLE: 2 },
});

class TTY extends LibuvStreamWrap {
    constructor(fd, context) {
        const handle = handles.stream_new('tty', fd);
        if (typeof handle === 'number' && context)
            Object.assign(context, { errno: handle, code: native.fs.error_name(handle),
                message: native.fs.error_text(handle), syscall: 'uv_tty_init' });
        super('TTYWRAP', handle);
    }
    getWindowSize(into) {
        const size = handles.tty_size(of(this));
        if (typeof size === 'number') return size;
        [into[0], into[1]] = size;
        return 0;
    }
    setRawMode(on) { return handles.tty_mode(of(this), on); }
    setBlocking(on) { return 0; }
}
bindings.tty_wrap = () => ({ TTY, isTTY: fd => handles.kind_of(fd) === 'TTY' });

bindings.signal_wrap = () => ({
    Signal: class Signal extends HandleWrap {
        constructor() { super('SIGNALWRAP', handles.signal_new()); }
        start(number) {
            return handles.signal_start(of(this), number,
                signal => shared.callback(this, this.onsignal, signal));
        }
        stop() { return handles.signal_stop(of(this)); }
    },
});

bindings.fs_event_wrap = () => ({
    FSEvent: class FSEvent extends HandleWrap {
        #started = false;
        constructor() { super('FSEVENTWRAP', handles.watch_new()); }
        get initialized() { return this.#started; }
        start(path, persistent, recursive, encoding) {
            const result = handles.watch_start(of(this), path, recursive ? 4 : 0,
                (status, events, name) => {
                    const kind = events & 1 ? 'rename' : events & 2 ? 'change' : '';
                    const { Buffer } = shared.require('buffer');
                    const value = encoding && encoding !== 'utf8' && name !== null
                        ? encoding === 'buffer' ? Buffer.from(name) : Buffer.from(name).toString(encoding)
                        : name;
                    shared.callback(this, this.onchange, status, kind, value);
                });
            this.#started = result === 0;
            if (!persistent) this.unref();
            return result;
        }
        close(done) {
            this.#started = false;
            super.close(done);
        }
    },
});
bindings.js_stream = () => ({ JSStream: class JSStream extends AsyncWrap {
    constructor() { super('JSSTREAM'); }
    close(done) { done?.(); }
    readStart() { return this.onreadstart?.() ?? 0; }
    readStop() { return this.onreadstop?.() ?? 0; }
    get isStreamBase() { return true; }
    finishWrite(request, status) { request.oncomplete?.(status, this, undefined); }
    finishShutdown(request, status) { request.oncomplete?.(status); }
    readBuffer() {} emitEOF() {}
    writeBuffer(request, buffer) { return this.onwrite?.(request, [buffer]) ?? 0; }
    shutdown(request) { return this.onshutdown?.(request) ?? 0; }
} });
bindings.stream_pipe = () => ({ StreamPipe: class StreamPipe {} });
