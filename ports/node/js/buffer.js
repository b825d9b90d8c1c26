// Buffer's own functions, and the numbers of the system.
'use strict';
const { bindings } = shared;
const bytes = native.buffer;

bindings.buffer = () => {
    const zeroFill = new Uint32Array(1);
    const methods = {};
    for (const name of Object.getOwnPropertyNames(bytes)) if (/(Slice|Write)$/.test(name)) methods[name] = bytes[name];
    return {
        ...methods,
        setBufferPrototype() {},
        getZeroFillToggle: () => zeroFill,
        createUnsafeArrayBuffer: size => new ArrayBuffer(size),
        kMaxLength: 2 ** 31 - 1,
        kStringMaxLength: 0x1fffffe8,
        byteLengthUtf8: bytes.byteLengthUtf8,
        copy: bytes.copy,
        compare: bytes.compare,
        compareOffset: bytes.compareOffset,
        fill: bytes.fill,
        indexOfBuffer: (buffer, value, offset, encoding, forward) =>
            bytes.indexOf(buffer, value, offset, encoding, forward),
        indexOfNumber: (buffer, value, offset, forward) =>
            bytes.indexOf(buffer, value, offset, 1, forward),
        indexOfString: (buffer, value, offset, encoding, forward) =>
            bytes.indexOf(buffer, value, offset, encoding, forward),
        swap16: bytes.swap16, swap32: bytes.swap32, swap64: bytes.swap64,
        isUtf8: bytes.isUtf8, isAscii: bytes.isAscii,
        createFromString: (text, encoding) => shared.buffer(bytes.fromString(text, encoding)),
        detachArrayBuffer: native.engine.detach,
        copyArrayBuffer(to, at, from, begin, count) {
            new Uint8Array(to, at, count).set(new Uint8Array(from, begin, count));
        },
        // -1: a character that is none of base64; -2: of Latin-1; -3: too few of them.
        atob(text) {
            let clean = String(text).replace(/[\t\n\f\r ]/g, '');
            if (/[^\0-\xff]/.test(clean)) return -1;
            if (clean.length % 4 === 0) clean = clean.replace(/==?$/, '');
            if (/[^A-Za-z0-9+/]/.test(clean)) return -1;
            if (clean.length % 4 === 1) return -3;
            return bytes.toString(bytes.fromString(clean, 2), 4);
        },
        btoa(text) {
            if (/[^\0-\xff]/.test(text)) return -1;
            return bytes.toString(bytes.fromString(text, 4), 2);
        },
    };
};
// A Buffer over the memory of an ArrayBuffer.
shared.buffer = memory => {
    const { Buffer } = shared.require('buffer');
    return Buffer.from(memory);
};
shared.text = memory => bytes.toString(memory, 1);

bindings.constants = () => {
    const lists = native.constants;
    const brotli = { BROTLI_DECODE: 8, BROTLI_ENCODE: 9, BROTLI_OPERATION_PROCESS: 0,
        BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_OPERATION_EMIT_METADATA: 3,
        BROTLI_PARAM_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_PARAM_LGWIN: 2, BROTLI_PARAM_SIZE_HINT: 5,
        BROTLI_DECODER_PARAM_LARGE_WINDOW: 1 };
    const fixed = value => Object.freeze(Object.assign(Object.create(null), value));
    const plain = value => Object.assign(Object.create(null), value);
    return {
        os: plain({
            UV_UDP_REUSEADDR: 4, dlopen: lists.dlopen, errno: lists.errno, signals: lists.signals,
            priority: plain({ PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0,
                PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 }),
        }),
        fs: plain({ ...lists.fs, EXTENSIONLESS_FORMAT_JAVASCRIPT: 0, EXTENSIONLESS_FORMAT_WASM: 1,
            COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4 }),
        crypto: plain({ RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4,
            RSA_PKCS1_PSS_PADDING: 6, ENGINE_METHOD_ALL: 65535, ENGINE_METHOD_NONE: 0,
            TLS1_VERSION: 769, TLS1_1_VERSION: 770, TLS1_2_VERSION: 771, TLS1_3_VERSION: 772,
            POINT_CONVERSION_COMPRESSED: 2, POINT_CONVERSION_UNCOMPRESSED: 4,
            POINT_CONVERSION_HYBRID: 6, defaultCoreCipherList: '', defaultCipherList: '',
            SSL_OP_CIPHER_SERVER_PREFERENCE: 0x400000 }),
        zlib: fixed({ ...lists.zlib, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5,
            INFLATERAW: 6, UNZIP: 7, ...brotli, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15,
            Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity,
            Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8,
            Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1 }),
        trace: plain({ TRACE_EVENT_PHASE_BEGIN: 66, TRACE_EVENT_PHASE_END: 69,
            TRACE_EVENT_PHASE_COMPLETE: 88, TRACE_EVENT_PHASE_INSTANT: 73,
            TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN: 98, TRACE_EVENT_PHASE_NESTABLE_ASYNC_END: 101,
            TRACE_EVENT_PHASE_COUNTER: 67 }),
        internal: plain({ EXTENSIONLESS_FORMAT_JAVASCRIPT: 0, EXTENSIONLESS_FORMAT_WASM: 1 }),
    };
};

bindings.uv = () => {
    const map = new Map(), numbers = {};
    for (const [number, name, text] of native.fs.errors()) {
        map.set(number, [name, text]);
        numbers[`UV_${name}`] = number;
    }
    return {
        ...numbers,
        errname: number => native.fs.error_name(number),
        getErrorMap: () => map,
        getErrorMessage: number => native.fs.error_text(number),
    };
};
