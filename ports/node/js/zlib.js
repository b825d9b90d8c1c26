// zlib's streams as the library knows them. Brotli is not there.
'use strict';
const { zlib } = native;
const { bindings, AsyncWrap } = shared;
if (!zlib.open) return;
const names = Object.fromEntries(['Z_OK', 'Z_STREAM_END', 'Z_NEED_DICT', 'Z_ERRNO', 'Z_STREAM_ERROR',
    'Z_DATA_ERROR', 'Z_MEM_ERROR', 'Z_BUF_ERROR', 'Z_VERSION_ERROR'].map((name, index) => [index < 3 ? index : 2 - index, name]));

class Zlib extends AsyncWrap {
    #mode; #stream; #state; #done; #closed = false; #busy = false;
    constructor(mode) {
        super('ZLIB');
        this.#mode = mode;
    }
    init(bits, level, memory, strategy, state, done, dictionary) {
        this.#state = state;
        this.#done = done;
        const stream = zlib.open(this.#mode, bits, level, memory, strategy, dictionary);
        if (typeof stream === 'number') throw Object.assign(new Error('Init error'), { code: names[stream] });
        this.#stream = stream;
    }
    #step(list) {
        const [room, left, error, text] = zlib.write(this.#stream, ...list);
        this.#state[0] = room;
        this.#state[1] = left;
        return [error, text];
    }
    #failed([error, text]) {
        if (error >= 0 && error !== 2) return false;
        this.onerror(text, error, names[error]);
        return true;
    }
    write(...list) {
        this.#busy = true;
        // Off the program's own stack, as if another thread had done it.
        shared.later(() => {
            this.#busy = false;
            if (this.#closed) return void zlib.close(this.#stream);
            shared.callback(this, () => {
                if (!this.#failed(this.#step(list))) this.#done.call(this);
            });
        });
    }
    writeSync(...list) { this.#failed(this.#step(list)); }
    params(level, strategy) {
        const error = zlib.params(this.#stream, level, strategy);
        if (error) this.onerror('Failed to set parameters', error, names[error]);
    }
    reset() {
        const error = zlib.reset(this.#stream);
        if (error) this.onerror('Failed to reset stream', error, names[error]);
    }
    close() {
        this.#closed = true;
        if (!this.#busy && this.#stream) zlib.close(this.#stream);
    }
    getAvailableMemory() { return 0; }
}
class Brotli {
    constructor() { throw new Error('Brotli is not there in this node'); }
}
bindings.zlib = () => ({
    Zlib, BrotliEncoder: Brotli, BrotliDecoder: Brotli, ZLIB_VERSION: zlib.version,
    crc32: (data, before = 0) => zlib.checksum(
        typeof data === 'string' ? native.buffer.fromString(data, 1) : data, before),
});
