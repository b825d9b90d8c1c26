// v8.serialize: values as bytes, in the format of V8 (version 15).
'use strict';
const { bindings } = shared;
const { classes, class_id: kind } = native.engine;
const views = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array',
    'Uint32Array', 'Float32Array', 'Float64Array', 'DataView', 'BigInt64Array', 'BigUint64Array'];
const letters = 'bBCwWdDfF?qQ';
const errors = { EvalError: 'E', RangeError: 'R', ReferenceError: 'F', SyntaxError: 'S', TypeError: 'T', URIError: 'U' };
const code = text => text.charCodeAt(0);

class Serializer {
    #bytes = []; #seen = new Map(); #host = false; #moved = new Map();
    #tag(letter) { this.#bytes.push(code(letter)); }
    #number(value) {
        for (; value > 127; value = Math.floor(value / 128)) this.#bytes.push(value % 128 | 128);
        this.#bytes.push(value);
    }
    #double(value) { this.#bytes.push(...new Uint8Array(new Float64Array([value]).buffer)); }
    #string(text) {
        if (/^[\0-\xff]*$/.test(text)) {
            this.#tag('"');
            this.#number(text.length);
            for (let i = 0; i < text.length; i++) this.#bytes.push(text.charCodeAt(i));
            return;
        }
        let size = 0;
        for (let n = text.length * 2; n > 127; n >>>= 7) size++;
        if ((this.#bytes.length + 2 + size) % 2) this.#bytes.push(0);
        this.#tag('c');
        this.#number(text.length * 2);
        for (let i = 0; i < text.length; i++) this.#bytes.push(text.charCodeAt(i) & 255, text.charCodeAt(i) >> 8);
    }
    #big(value) {
        const negative = value < 0n, digits = [];
        for (let left = negative ? -value : value; left; left >>= 64n)
            for (let i = 0n; i < 64n; i += 8n) digits.push(Number(left >> i & 255n));
        this.#number(digits.length << 1 | negative);
        this.#bytes.push(...digits);
    }
    #properties(object, keys) {
        for (const key of keys) {
            if (/^(0|[1-9]\d{0,8})$/.test(key)) this.#tag('I'), this.#number(Number(key) * 2);
            else this.#string(key);
            this.writeValue(object[key]);
        }
        return keys.length;
    }
    writeHeader() { this.#bytes.push(0xff, 15); }
    writeUint32(value) { this.#number(value >>> 0); }
    writeUint64(high, low) {
        let value = BigInt(high) << 32n | BigInt(low);
        for (; value > 127n; value >>= 7n) this.#bytes.push(Number(value & 127n) | 128);
        this.#bytes.push(Number(value));
    }
    writeDouble(value) { this.#double(value); }
    writeRawBytes(data) {
        for (const byte of new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength)) this.#bytes.push(byte);
    }
    transferArrayBuffer(id, buffer) { this.#moved.set(buffer, id); }
    _setTreatArrayBufferViewsAsHostObjects(on) { this.#host = on; }
    releaseBuffer() {
        const bytes = Uint8Array.from(this.#bytes);
        this.#bytes = [];
        return shared.buffer(bytes.buffer);
    }
    #refuse(value) {
        const text = typeof value === 'symbol' ? String(value) : typeof value === 'function' ? String(value) : `#<${value.constructor?.name ?? 'Object'}>`;
        throw new this._getDataCloneError(`${text} could not be cloned.`);
    }
    writeValue(value) {
        switch (typeof value) {
        case 'undefined': return this.#tag('_'), true;
        case 'boolean': return this.#tag(value ? 'T' : 'F'), true;
        case 'number':
            if (Number.isInteger(value) && Math.abs(value) < 2 ** 30 && !Object.is(value, -0)) {
                this.#tag('I');
                this.#number(value < 0 ? -value * 2 - 1 : value * 2);
            } else {
                this.#tag('N');
                this.#double(value);
            }
            return true;
        case 'bigint': return this.#tag('Z'), this.#big(value), true;
        case 'string': return this.#string(value), true;
        case 'function': case 'symbol': return this.#refuse(value);
        }
        if (value === null) return this.#tag('0'), true;
        this.#object(value);
        return true;
    }
    #object(value) {
        if (this.#seen.has(value)) {
            this.#tag('^');
            this.#number(this.#seen.get(value));
            return;
        }
        if (ArrayBuffer.isView(value) && !this.#host && !this.#seen.has(value.buffer)) this.#object(value.buffer);
        this.#seen.set(value, this.#seen.size);
        const id = kind(value);
        switch (id) {
        case classes.DATE: return this.#tag('D'), this.#double(value.getTime());
        case classes.BOOLEAN: return this.#tag(value.valueOf() ? 'y' : 'x');
        case classes.NUMBER: return this.#tag('n'), this.#double(value.valueOf());
        case classes.BIG_INT: return this.#tag('z'), this.#big(value.valueOf());
        case classes.STRING: return this.#tag('s'), this.#string(value.valueOf());
        case classes.REGEXP:
            this.#tag('R');
            this.#string(value.source);
            return this.#number([...'gimyus'].reduce((all, flag, bit) => all | value.flags.includes(flag) << bit, 0));
        case classes.MAP:
            this.#tag(';');
            for (const [key, item] of [...value]) this.writeValue(key), this.writeValue(item);
            this.#tag(':');
            return this.#number(value.size * 2);
        case classes.SET:
            this.#tag("'");
            for (const item of [...value]) this.writeValue(item);
            this.#tag(',');
            return this.#number(value.size);
        case classes.ARRAY_BUFFER:
            if (this.#moved.has(value)) return this.#tag('t'), this.#number(this.#moved.get(value));
            this.#tag('B');
            this.#number(value.byteLength);
            return this.writeRawBytes(value);
        case classes.ERROR: {
            this.#tag('r');
            if (errors[value.name]) this.#tag(errors[value.name]);
            this.#tag('m');
            this.#string(String(value.message));
            if (typeof value.stack === 'string') this.#tag('s'), this.#string(value.stack);
            return this.#tag('.');
        }
        case classes.PROMISE: case classes.WEAKMAP: case classes.WEAKSET: case classes.SYMBOL: return this.#refuse(value);
        }
        if (ArrayBuffer.isView(value)) {
            if (this.#host) return this.#tag('\\'), void this._writeHostObject(value);
            this.#tag('V');
            this.#tag(letters[views.indexOf(value[Symbol.toStringTag] ?? 'DataView')]);
            this.#number(value.byteOffset);
            this.#number(value.byteLength);
            return this.#number(0);
        }
        if (value instanceof shared.AsyncWrap) return this.#tag('\\'), void this._writeHostObject(value);
        const keys = Object.keys(value);
        if (Array.isArray(value)) {
            const dense = keys.length >= value.length && value.every((_, index) => index in value);
            this.#tag(dense ? 'A' : 'a');
            this.#number(value.length);
            let rest = keys;
            if (dense) {
                for (const item of value) this.writeValue(item);
                rest = keys.slice(value.length);
            }
            const count = this.#properties(value, rest);
            this.#tag(dense ? '$' : '@');
            this.#number(count);
            return this.#number(value.length);
        }
        this.#tag('o');
        const count = this.#properties(value, keys);
        this.#tag('{');
        return this.#number(count);
    }
}

class Deserializer {
    #bytes; #at = 0; #objects = []; #moved = new Map(); #version = 0;
    constructor(buffer) {
        if (!ArrayBuffer.isView(buffer)) {
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_INVALID_ARG_TYPE('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
        }
        this.buffer = buffer;
        this.#bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    }
    #byte() {
        if (this.#at >= this.#bytes.length) this.#wrong();
        return this.#bytes[this.#at++];
    }
    #wrong() { throw new Error('Unable to deserialize cloned data.'); }
    #number() {
        for (let value = 0, scale = 1; ; scale *= 128) {
            const byte = this.#byte();
            value += (byte & 127) * scale;
            if (byte < 128) return value;
        }
    }
    #take(length) {
        if (!(length >= 0 && this.#at + length <= this.#bytes.length)) this.#wrong();
        return this.#bytes.subarray(this.#at, this.#at += length);
    }
    #double() { return new Float64Array(this.#take(8).slice().buffer)[0]; }
    #big() {
        const field = this.#number();
        let value = 0n;
        this.#take(field >> 1).forEach((byte, index) => { value |= BigInt(byte) << BigInt(8 * index); });
        return field & 1 ? -value : value;
    }
    readHeader() {
        if (this.#byte() !== 0xff) this.#wrong();
        this.#version = this.#number();
        if (this.#version > 15) this.#wrong();
        return true;
    }
    getWireFormatVersion() { return this.#version; }
    transferArrayBuffer(id, buffer) { this.#moved.set(id, buffer); }
    readUint32() { return this.#number(); }
    readUint64() {
        let value = 0n;
        for (let shift = 0n; ; shift += 7n) {
            const byte = this.#byte();
            value |= BigInt(byte & 127) << shift;
            if (byte < 128) return [Number(value >> 32n), Number(value & 0xffffffffn)];
        }
    }
    readDouble() { return this.#double(); }
    _readRawBytes(length) {
        const from = this.#at;
        this.#take(length);
        return from;
    }
    readRawBytes(length) {
        const part = this.#take(length);
        return shared.buffer(part.slice().buffer);
    }
    #keep(object) {
        this.#objects.push(object);
        return object;
    }
    #properties(object, end) {
        while (this.#peek() !== end) {
            const key = this.readValue();
            if (typeof key !== 'string' && typeof key !== 'number') this.#wrong();
            shared.put(object, key, this.readValue());
        }
        this.#byte();
        this.#number();
        return object;
    }
    #peek() {
        while (this.#bytes[this.#at] === 0) this.#at++;
        if (this.#at >= this.#bytes.length) this.#wrong();
        return String.fromCharCode(this.#bytes[this.#at]);
    }
    #text() {
        const value = this.readValue();
        return typeof value === 'string' ? value : this.#wrong();
    }
    readValue() {
        const tag = this.#peek();
        this.#at++;
        switch (tag) {
        case '_': return undefined;
        case '0': return null;
        case 'T': return true;
        case 'F': return false;
        case 'I': {
            const value = this.#number();
            return value % 2 ? -(value + 1) / 2 : value / 2;
        }
        case 'U': return this.#number();
        case 'N': return this.#double();
        case 'Z': return this.#big();
        case '"': return native.buffer.toString(this.#take(this.#number()), 4);
        case 'c': return native.buffer.toString(this.#take(this.#number()), 3);
        case 'S': return native.buffer.toString(this.#take(this.#number()), 1);
        case '^': {
            const index = this.#number();
            return index < this.#objects.length ? this.#objects[index] : this.#wrong();
        }
        case 'D': return this.#keep(new Date(this.#double()));
        case 'y': return this.#keep(Object(true));
        case 'x': return this.#keep(Object(false));
        case 'n': return this.#keep(Object(this.#double()));
        case 'z': return this.#keep(Object(this.#big()));
        case 's': return this.#keep(Object(this.#text()));
        case 'R': {
            const source = this.#text(), flags = this.#number();
            return this.#keep(new RegExp(source, [...'gimyus'].filter((_, bit) => flags >> bit & 1).join('')));
        }
        case ';': {
            const map = this.#keep(new Map());
            while (this.#peek() !== ':') map.set(this.readValue(), this.readValue());
            this.#at++;
            this.#number();
            return map;
        }
        case "'": {
            const set = this.#keep(new Set());
            while (this.#peek() !== ',') set.add(this.readValue());
            this.#at++;
            this.#number();
            return set;
        }
        case 't': return this.#keep(this.#moved.get(this.#number()));
        case 'B': {
            const memory = this.#keep(this.#take(this.#number()).slice().buffer);
            return this.#bytes[this.#at] === code('V') ? this.#view(memory) : memory;
        }
        case 'V': {
            this.#at--;
            return this.#view(this.#objects.at(-1));
        }
        case 'r': return this.#error();
        case '\\': return this.#keep(this._readHostObject());
        case 'o': return this.#properties(this.#keep({}), '{');
        case 'A': {
            const length = this.#number(), list = this.#keep([]);
            for (let i = 0; i < length; i++) list[i] = this.readValue();
            this.#properties(list, '$');
            this.#number();
            return list;
        }
        case 'a': {
            const list = this.#keep([]), length = this.#number();
            this.#properties(list, '@');
            this.#number();
            list.length = length;
            return list;
        }
        }
        return this.#wrong();
    }
    #view(memory) {
        this.#at++;
        const name = views[letters.indexOf(String.fromCharCode(this.#byte()))], offset = this.#number(), length = this.#number();
        if (this.#version >= 14) this.#number();
        if (!name || !(memory instanceof ArrayBuffer)) this.#wrong();
        const type = globalThis[name];
        return this.#keep(new type(memory, offset, length / (type.BYTES_PER_ELEMENT ?? 1)));
    }
    #error() {
        let name = 'Error', message = '', stack;
        for (;;) {
            const tag = String.fromCharCode(this.#byte());
            const found = Object.keys(errors).find(each => errors[each] === tag);
            if (found) name = found;
            else if (tag === 'm') message = this.#text();
            else if (tag === 's') stack = this.#text();
            else if (tag === '.') break;
            else this.#wrong();
        }
        const error = this.#keep(new globalThis[name](message));
        if (stack !== undefined) Object.defineProperty(error, 'stack', { value: stack, writable: true, configurable: true });
        return error;
    }
}
bindings.serdes = () => ({ Serializer, Deserializer });
