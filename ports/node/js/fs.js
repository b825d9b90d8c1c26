// Files. Each function takes what the library gives it, then a request or nothing.
'use strict';
const { fs } = native;
const { bindings, binding, AsyncWrap } = shared;

const { fs_use_promises_symbol: kUsePromises } = binding('symbols');
const statValues = new Float64Array(36), bigintStatValues = new BigInt64Array(36);
const statFsValues = new Float64Array(7), bigintStatFsValues = new BigInt64Array(7);

class FSReqCallback extends AsyncWrap {
    constructor(big) {
        super('FSREQCALLBACK');
        this.big = big;
    }
}
Object.defineProperty(FSReqCallback.prototype, 'big', { value: false, writable: true, enumerable: false });

const isError = result => typeof result === 'number' && result < 0;
const shown = path => typeof path === 'string' || path === undefined ? path : shared.text(path);

// Calls `start` with a function for the result, or without one. `convert` makes of it
// the library's result.
function perform(call, request, paths, start, convert = value => value, context) {
    const names = () => paths.map(shown);
    if (request === undefined) {
        const result = start(undefined);
        if (isError(result)) {
            if (context !== undefined) {
                Object.assign(context, { errno: result, code: fs.error_name(result), syscall: call });
                return undefined;
            }
            throw shared.systemError(result, call, ...names());
        }
        return convert(result, false);
    }
    // If it cannot even begin, there is nothing that calls back.
    const begin = done => {
        const failed = start(done);
        if (isError(failed)) shared.later(() => done(failed));
    };
    if (request === kUsePromises) {
        return new Promise((resolve, reject) => {
            begin(result => isError(result)
                ? reject(shared.systemError(result, call, ...names()))
                : resolve(convert(result, true)));
        });
    }
    begin(result => {
        const done = request.oncomplete;
        if (isError(result))
            shared.callback(request, done, shared.systemError(result, call, ...names()));
        else {
            const value = convert(result, true);
            if (value === undefined) shared.callback(request, done, null);
            else shared.callback(request, done, null, value);
        }
    });
    return undefined;
}

const stats = big => (list, fresh) => {
    if (big) {
        const into = fresh ? new BigInt64Array(36) : bigintStatValues;
        list.forEach((value, index) => { into[index] = BigInt(value); });
        return into;
    }
    const into = fresh ? new Float64Array(36) : statValues;
    into.set(list);
    return into;
};
const statistics = big => (list, fresh) => {
    if (big) {
        const into = fresh ? new BigInt64Array(7) : bigintStatFsValues;
        list.forEach((value, index) => { into[index] = BigInt(value); });
        return into;
    }
    const into = fresh ? new Float64Array(7) : statFsValues;
    into.set(list);
    return into;
};
const nothing = () => undefined;
const named = encoding => name => {
    if (typeof name === 'string') return name;
    const buffer = shared.buffer(name.buffer);
    return encoding === 'buffer' ? buffer : buffer.toString(encoding);
};
// Whether names have to come as bytes.
const raw = encoding => encoding !== undefined && encoding !== null && !/^utf-?8$/i.test(encoding);

// Descriptors are checked here, since the library leaves that to its other half.
const descriptor = fd => shared.require('internal/fs/utils').getValidatedFd(fd);
const simple = (call, native, paths) => (...list) => {
    const count = native.length - 1;
    if (paths === 0) descriptor(list[0]);
    return perform(call, list[count], list.slice(0, paths),
        done => native(...list.slice(0, count), done), nothing);
};
const missing = number => number === -2 || number === -20;

// Makes a directory and those above it; the first that was made, if any.
function makeAll(path, mode) {
    const { dirname } = shared.require('path');
    let first;
    const make = name => {
        const result = fs.mkdir(name, mode);
        if (result === -2) {
            const above = dirname(name);
            if (above === name) return result;
            const failed = make(above);
            return failed < 0 ? failed : make(name);
        }
        if (result === -17) {
            const kind = fs.kind(name);
            return kind === 1 ? 0 : name === path ? -17 : -20;
        }
        if (result === 0) first ??= name;
        return result;
    };
    const text = shown(path), result = make(text.length > 1 ? text.replace(/\/+$/, '') || '/' : text);
    return result < 0 ? result : first;
}

class FileHandle extends AsyncWrap {
    #fd; #closing;
    constructor(fd) {
        super('FILEHANDLE');
        this.#fd = fd;
    }
    get fd() { return this.#fd; }
    get isStreamBase() { return false; }
    close() {
        if (this.#closing) return this.#closing;
        const fd = this.#fd;
        return (this.#closing = new Promise((resolve, reject) => {
            fs.close(fd, result => {
                this.#fd = -1;
                if (result < 0) reject(shared.systemError(result, 'close'));
                else resolve();
            });
        }));
    }
    releaseFD() {
        const fd = this.#fd;
        this.#fd = -1;
        return fd;
    }
    onread() {}
}

// Reports what differs between two looks at a file, in the time that it is told.
class StatWatcher extends AsyncWrap {
    #timer; #last; #big;
    constructor(big) {
        super('STATWATCHER');
        this.#big = big;
    }
    start(path, interval) {
        const look = first => fs.stat(path, result => {
            if (this.#timer === undefined) return;
            const now = isError(result) ? new Array(18).fill(0) : result;
            const both = [...now, ...(this.#last ?? now)];
            const changed = this.#last && now.some((value, index) =>
                ![10, 11].includes(index) && value !== this.#last[index]);
            this.#last = now;
            if (changed || first && isError(result)) {
                const values = this.#big ? BigInt64Array.from(both, BigInt) : Float64Array.from(both);
                shared.callback(this, this.onchange, isError(result) ? result : 0, values);
            }
        });
        this.#timer = shared.require('timers').setInterval(() => look(false), interval);
        look(true);
        return 0;
    }
    close() {
        shared.require('timers').clearInterval(this.#timer);
        this.#timer = undefined;
    }
    ref() { this.#timer?.ref(); }
    unref() { this.#timer?.unref(); }
}

bindings.fs = () => {
    const position = value => typeof value === 'bigint' ? value < 0n ? null : value
        : typeof value === 'number' && value >= 0 ? value : null;
    const piece = (buffer, offset, length) => new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);
    const stat = (call, native, paths) => (path, big, request, third) => {
        if (!paths) descriptor(path);
        if (request === undefined && third === false) {
            const result = native(path);
            if (isError(result) && missing(result)) return undefined;
            if (isError(result)) throw shared.systemError(result, call, ...(paths ? [shown(path)] : []));
            return stats(big)(result, false);
        }
        return perform(call, request, paths ? [path] : [], done => native(path, done),
            stats(big ?? request?.big));
    };
    const writeText = (fd, text, at, encoding, request, context) => {
        const { Buffer } = shared.require('buffer');
        const data = Buffer.from(text, typeof encoding === 'string' ? encoding : 'utf8');
        return perform('write', request, [], done => fs.write(fd, [data], position(at), done),
            undefined, context);
    };
    return {
        kFsStatsFieldsNumber: 18, kUsePromises, FSReqCallback, FileHandle, StatWatcher,
        statValues, bigintStatValues, statFsValues, bigintStatFsValues,
        access: simple('access', fs.access, 1),
        close: simple('close', fs.close, 0),
        existsSync: path => fs.access(path, 0) === 0,
        open: (path, flags, mode, request) =>
            perform('open', request, [path], done => fs.open(path, flags, mode, done)),
        openFileHandle: (path, flags, mode, request) => perform('open', request, [path],
            done => fs.open(path, flags, mode, done), fd => new FileHandle(fd)),
        read: (fd, buffer, offset, length, at, request) => perform('read', request, [],
            done => fs.read(fd, [piece(buffer, offset, length)], position(at), done)),
        readBuffers: (fd, buffers, at, request) => perform('read', request, [],
            done => fs.read(fd, [...buffers], position(at), done)),
        readFileUtf8(path, flags) {
            const result = fs.read_file(path, flags);
            if (isError(result)) {
                const directory = result === -21;
                throw shared.systemError(result, directory ? 'read' : 'open',
                    directory || typeof path === 'number' ? undefined : shown(path));
            }
            return shared.text(result);
        },
        writeFileUtf8(path, text, flag, mode) {
            const fd = typeof path === 'number' ? path : fs.open(path, flag, mode);
            if (isError(fd)) throw shared.systemError(fd, 'open', shown(path));
            let data = new Uint8Array(native.buffer.fromString(text, 1)), failed = 0;
            while (data.length && failed >= 0) {
                failed = fs.write(fd, [data], null);
                if (failed > 0) data = data.subarray(failed);
            }
            if (typeof path !== 'number') fs.close(fd);
            if (failed < 0) throw shared.systemError(failed, 'write', shown(path));
        },
        writeBuffer: (fd, buffer, offset, length, at, request, context) => perform('write', request, [],
            done => fs.write(fd, [piece(buffer, offset, length)], position(at), done), undefined, context),
        writeBuffers: (fd, buffers, at, request) => perform('write', request, [],
            done => fs.write(fd, [...buffers], position(at), done)),
        writeString: writeText,
        fdatasync: simple('fdatasync', fs.fdatasync, 0),
        fsync: simple('fsync', fs.fsync, 0),
        rename: simple('rename', fs.rename, 2),
        ftruncate: simple('ftruncate', fs.ftruncate, 0),
        rmdir: simple('rmdir', fs.rmdir, 1),
        mkdir(path, mode, all, request) {
            if (!all) return perform('mkdir', request, [path], done => fs.mkdir(path, mode, done), nothing);
            return perform('mkdir', request, [path], done => {
                const result = makeAll(path, mode);
                if (done) return void shared.later(() => done(result));
                return result;
            });
        },
        readdir: (path, encoding, types, request) => perform('scandir', request, [path],
            done => fs.scandir(path, raw(encoding), done), ([names, kinds]) => {
                const list = raw(encoding) ? names.map(named(encoding)) : names;
                return types ? [list, kinds] : list;
            }),
        internalModuleStat: (...list) => fs.kind(list.at(-1)),
        internalModuleReadJSON(path) {
            const bytes = fs.read_file(path, 0);
            if (isError(bytes)) return [];
            const text = shared.text(bytes);
            return [text.charCodeAt(0) === 0xfeff ? text.slice(1) : text, /"(main|exports|imports|name|type)"/.test(text)];
        },
        stat: stat('stat', fs.stat, 1),
        lstat: stat('lstat', fs.lstat, 1),
        fstat: stat('fstat', fs.fstat, 0),
        statfs: (path, big, request) => perform('statfs', request, [path],
            done => fs.statfs(path, done), statistics(big)),
        link: simple('link', fs.link, 2),
        symlink: (target, path, flags, request) =>
            perform('symlink', request, [target, path], done => fs.symlink(target, path, done), nothing),
        readlink: (path, encoding, request) => perform('readlink', request, [path],
            done => fs.readlink(path, raw(encoding), done), named(encoding)),
        unlink: simple('unlink', fs.unlink, 1),
        realpath: (path, encoding, request) => perform('realpath', request, [path],
            done => fs.realpath(path, raw(encoding), done), named(encoding)),
        copyFile: simple('copyfile', fs.copyfile, 2),
        chmod: simple('chmod', fs.chmod, 1),
        fchmod: simple('fchmod', fs.fchmod, 0),
        chown: simple('chown', fs.chown, 1),
        fchown: simple('fchown', fs.fchown, 0),
        lchown: simple('lchown', fs.lchown, 1),
        utimes: simple('utime', fs.utime, 1),
        futimes: simple('futime', fs.futime, 0),
        lutimes: simple('lutime', fs.lutime, 1),
        mkdtemp: (prefix, encoding, request) => {
            const template = typeof prefix === 'string' ? `${prefix}XXXXXX`
                : new Uint8Array([...prefix, ...'XXXXXX'].map(c => typeof c === 'string' ? 88 : c));
            return perform('mkdtemp', request, [template],
                done => fs.mkdtemp(template, raw(encoding), done), named(encoding));
        },
        getFormatOfExtensionlessFile(path) {
            const bytes = fs.read_file(path, 0);
            const head = isError(bytes) ? [] : new Uint8Array(bytes).subarray(0, 4);
            return head.length === 4 && head[0] === 0 && head[1] === 0x61 && head[2] === 0x73 &&
                head[3] === 0x6d ? 1 : 0;
        },
        legacyMainResolve(packageURL, main, base) {
            const { fileURLToPath } = shared.require('internal/url');
            const tries = [...(main ? ['', '.js', '.json', '.node', '/index.js', '/index.json', '/index.node']
                .map(end => `./${main}${end}`) : new Array(7)), './index.js', './index.json', './index.node'];
            for (let i = 0; i < tries.length; i++)
                if (tries[i] && fs.kind(fileURLToPath(new URL(tries[i], packageURL))) === 0) return i;
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_MODULE_NOT_FOUND(fileURLToPath(new URL('.', packageURL)),
                base && fileURLToPath(base), 'package');
        },
    };
};

// Calls a function when the event loop is next at it.
shared.later = function_ => fs.access('/', 0, function_);

bindings.fs_dir = () => {
    class DirHandle extends AsyncWrap {
        #left; #encoding;
        constructor(names, types, encoding) {
            super('DIRHANDLE');
            this.#left = names.flatMap((name, index) => [named(encoding)(name), types[index]]);
        }
        read(encoding, size, request) {
            return perform('scandir', request, [], done => {
                const some = this.#left.splice(0, 2 * size);
                const result = some.length ? some : null;
                return done ? void shared.later(() => done(result)) : result;
            });
        }
        close(request) {
            return perform('closedir', request, [], done => done ? void shared.later(() => done(0)) : 0, nothing);
        }
    }
    const open = (path, encoding, request) => perform('opendir', request, [path],
        done => fs.scandir(path, raw(encoding), done),
        ([names, types]) => new DirHandle(names, types, encoding));
    return { DirHandle, opendir: open, opendirSync: path => open(path, 'utf8') };
};
