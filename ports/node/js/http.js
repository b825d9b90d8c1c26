// The parser of HTTP as the library knows it.
'use strict';
const { http } = native;
const { bindings, AsyncWrap } = shared;
if (!http.open) return;

const ON_BEGIN = 0, ON_HEADERS = 1, ON_HEAD = 2, ON_BODY = 3, ON_COMPLETE = 4, ON_EXECUTE = 5;

class ConnectionsList {
    #all = new Set();
    static add(list, parser) { list?.#all.add(parser); }
    static remove(list, parser) { list?.#all.delete(parser); }
    all() { return [...this.#all]; }
    idle() { return this.all().filter(parser => parser.duration_.lastMessage === 0); }
    active() { return this.all().filter(parser => parser.duration_.lastMessage !== 0); }
    expired(headers, request) {
        const now = native.loop.now();
        const late = this.active().filter(parser => {
            const { lastMessage, headersDone } = parser.duration_;
            const limit = !headersDone && headers ? headers : request;
            return limit > 0 && now - lastMessage >= limit;
        });
        for (const parser of late) this.#all.delete(parser);
        return late;
    }
}

class HTTPParser extends AsyncWrap {
    #parser; #list; #current; #stream;
    constructor() {
        super('HTTPINCOMINGMESSAGE');
        Object.defineProperty(this, 'duration_', { value: { lastMessage: 0, headersDone: false }, enumerable: false });
        this.#parser = http.open((event, ...list) => this.#happened(event, list));
    }
    #happened(event, list) {
        const { Buffer } = shared.require('buffer');
        switch (event) {
        case ON_BEGIN:
            this.duration_.lastMessage = native.loop.now();
            this.duration_.headersDone = false;
            this[ON_BEGIN]?.();
            return 0;
        case ON_HEADERS:
            this[ON_HEADERS]?.(list[0], '');
            return 0;
        case ON_HEAD: {
            this.duration_.headersDone = true;
            const [major, minor, headers, method, url, status, message, upgrade, keep] = list;
            const request = this.#kind === 1;
            const skip = this[ON_HEAD]?.(major, minor, headers, request ? method : undefined,
                request ? url : undefined, request ? undefined : status,
                request ? undefined : message, upgrade, keep);
            return Number(skip ?? 0);
        }
        case ON_BODY:
            this[ON_BODY]?.(Buffer.from(list[0]));
            return 0;
        case ON_COMPLETE:
            this.duration_.lastMessage = 0;
            this[ON_COMPLETE]?.();
            return 0;
        }
        return 0;
    }
    #kind;
    initialize(kind, resource, most = 0, leniency = 0, list) {
        this.#kind = kind;
        ConnectionsList.remove(this.#list, this);
        this.#list = list;
        ConnectionsList.add(list, this);
        this.duration_.lastMessage = list ? native.loop.now() : 0;
        http.start(this.#parser, kind, most > 0 ? most : 16384, leniency);
    }
    #result(answer) {
        if (!Array.isArray(answer)) return answer;
        const [used, code, reason] = answer;
        const own = /^(HPE_[A-Z_]+):(.*)$/s.exec(reason);
        const error = new Error(`Parse Error: ${own ? own[2] : reason}`);
        error.bytesParsed = used;
        error.code = own ? own[1] : code;
        error.reason = own ? own[2] : reason;
        return error;
    }
    execute(buffer, offset, length) {
        this.#current = buffer;
        try {
            return this.#result(http.execute(this.#parser, buffer));
        } finally {
            this.#current = undefined;
        }
    }
    finish() { return this.#result(http.finish(this.#parser)); }
    pause() { http.pause(this.#parser, true); }
    resume() { http.pause(this.#parser, false); }
    close() {}
    free() {}
    remove() { ConnectionsList.remove(this.#list, this); }
    // Takes a connection's data before the socket sees it.
    consume(stream) {
        this.#stream = stream;
        shared.LibuvStreamWrap.consume(stream, (count, data) => {
            if (count <= 0) return false;
            const { Buffer } = shared.require('buffer');
            const buffer = Buffer.from(data);
            shared.callback(stream, () => {
                this.#last = buffer;
                const answer = this.execute(buffer);
                this[ON_EXECUTE]?.(answer);
                this.#last = undefined;
            });
            return true;
        });
    }
    #last;
    unconsume() {
        if (this.#stream) shared.LibuvStreamWrap.consume(this.#stream, undefined);
        this.#stream = undefined;
    }
    getCurrentBuffer() { return this.#current ?? this.#last; }
    duration() { return this.duration_.lastMessage ? native.loop.now() - this.duration_.lastMessage : 0; }
    headersCompleted() { return this.duration_.headersDone; }
}
Object.assign(HTTPParser, {
    REQUEST: 1, RESPONSE: 2, kOnMessageBegin: ON_BEGIN, kOnHeaders: ON_HEADERS, kOnHeadersComplete: ON_HEAD,
    kOnBody: ON_BODY, kOnMessageComplete: ON_COMPLETE, kOnExecute: ON_EXECUTE, kOnTimeout: 6,
    kLenientNone: 0, kLenientHeaders: 1, kLenientChunkedLength: 2, kLenientKeepAlive: 4,
    kLenientTransferEncoding: 8, kLenientVersion: 16, kLenientDataAfterClose: 32,
    kLenientOptionalLFAfterCR: 64, kLenientOptionalCRLFAfterChunk: 128,
    kLenientOptionalCRBeforeLF: 256, kLenientSpacesAfterChunkSize: 512, kLenientAll: 1023,
});

bindings.http_parser = () => ({
    methods: http.methods(false), allMethods: http.methods(true), HTTPParser, ConnectionsList,
});
