// Names of hosts, UDP, and lists of addresses.
'use strict';
const { handles } = native;
const { bindings, AsyncWrap, HandleWrap } = shared;
const of = shared.nativeOf;

bindings.cares_wrap = () => {
    class GetAddrInfoReqWrap extends AsyncWrap { constructor() { super('GETADDRINFOREQWRAP'); } }
    class GetNameInfoReqWrap extends AsyncWrap { constructor() { super('GETNAMEINFOREQWRAP'); } }
    class QueryReqWrap extends AsyncWrap { constructor() { super('QUERYWRAP'); } }
    // Questions to name servers themselves are not there: dns.lookup is.
    class ChannelWrap extends AsyncWrap {
        #servers = [];
        constructor() { super('DNSCHANNEL'); }
        getServers() { return this.#servers; }
        setServers(list) { this.#servers = list.map(([, address, port]) => [address, port]); return 0; }
        setLocalAddress() {}
        cancel() {}
    }
    for (const kind of ['Any', 'A', 'Aaaa', 'Caa', 'Cname', 'Mx', 'Ns', 'Txt', 'Srv', 'Ptr', 'Naptr', 'Soa'])
        ChannelWrap.prototype[`query${kind}`] = () => -38;
    ChannelWrap.prototype.getHostByAddr = () => -38;
    return {
        ...native.constants.names, DNS_ORDER_VERBATIM: 0, DNS_ORDER_IPV4_FIRST: 1, DNS_ORDER_IPV6_FIRST: 2,
        GetAddrInfoReqWrap, GetNameInfoReqWrap, QueryReqWrap, ChannelWrap,
        getaddrinfo: (request, host, family, hints, order) => handles.lookup(host, family, hints,
            (status, found) => {
                if (status) return void shared.callback(request, request.oncomplete, status, null);
                const of = name => found.filter(each => each.family === name);
                const first = order === 1 || order === false ? ['IPv4', 'IPv6'] : order === 2 ? ['IPv6', 'IPv4'] : null;
                const sorted = first ? first.flatMap(of) : found;
                const addresses = [...new Set(sorted.map(each => each.address))];
                shared.callback(request, request.oncomplete, addresses.length ? null : -3007, addresses);
            }),
        getnameinfo: (request, host, port) => handles.name_of(host, port,
            (status, name, service) => shared.callback(request, request.oncomplete, status || null, name, service)),
        canonicalizeIP: handles.canonical,
        strerror: code => native.fs.error_text(code),
    };
};

bindings.udp_wrap = () => {
    class SendWrap extends AsyncWrap { constructor() { super('UDPSENDWRAP'); } }
    class UDP extends HandleWrap {
        constructor() { super('UDPWRAP', handles.udp_new()); }
        get fd() { return handles.descriptor(of(this)); }
        bind(address, port, flags) { return handles.udp_bind(of(this), address, port, flags); }
        bind6(address, port, flags) { return this.bind(address, port, flags); }
        connect(address, port) { return handles.udp_connect(of(this), address, port); }
        connect6(address, port) { return this.connect(address, port); }
        disconnect() { return handles.udp_connect(of(this), undefined, 0); }
        #send(request, list, address, port) {
            const { Buffer } = shared.require('buffer');
            const data = Buffer.concat(list.map(each => typeof each === 'string' ? Buffer.from(each) : each));
            return handles.udp_send(of(this), data, address, port, status =>
                shared.callback(request, request.oncomplete, status, data.length));
        }
        send(request, list, count, port, address) {
            // Connected, the fourth is whether there is a callback.
            return typeof address === 'string' ? this.#send(request, list, address, port)
                : this.#send(request, list, undefined, 0);
        }
        send6(...list) { return this.send(...list); }
        recvStart() {
            return handles.udp_receive(of(this), (count, data, from) => {
                const { Buffer } = shared.require('buffer');
                shared.callback(this, this.onmessage, count, this,
                    data && Buffer.from(data), from && { ...from, size: count });
            });
        }
        recvStop() { return handles.udp_receive(of(this), undefined); }
        getsockname(into) {
            const name = handles.stream_name(of(this), false);
            return typeof name === 'number' ? name : (Object.assign(into, name), 0);
        }
        getpeername(into) {
            const name = handles.stream_name(of(this), true);
            return typeof name === 'number' ? name : (Object.assign(into, name), 0);
        }
        setBroadcast(on) { return handles.udp_option(of(this), 0, on); }
        setTTL(count) { return handles.udp_option(of(this), 1, count); }
        setMulticastTTL(count) { return handles.udp_option(of(this), 2, count); }
        setMulticastLoopback(on) { return handles.udp_option(of(this), 3, on); }
        setMulticastInterface(name) { return handles.udp_group(of(this), undefined, name, false); }
        addMembership(address, name) { return handles.udp_group(of(this), address, name, true); }
        dropMembership(address, name) { return handles.udp_group(of(this), address, name, false); }
        bufferSize(size, receives, context) {
            const result = handles.udp_buffer(of(this), receives, size);
            if (result >= 0) return result;
            Object.assign(context, { errno: result, code: native.fs.error_name(result), message: native.fs.error_text(result),
                syscall: receives ? 'uv_recv_buffer_size' : 'uv_send_buffer_size' });
            return undefined;
        }
        getSendQueueSize() { return handles.udp_queue(of(this))[0]; }
        getSendQueueCount() { return handles.udp_queue(of(this))[1]; }
    }
    return { UDP, SendWrap, constants: { UV_UDP_IPV6ONLY: 1, UV_UDP_REUSEADDR: 4 } };
};
bindings.js_udp_wrap = () => ({ JSUDPWrap: class {} });

// Addresses as numbers, to compare them.
function number(address) {
    if (address.includes('.') && !address.includes(':'))
        return address.split('.').reduce((all, part) => all * 256n + BigInt(part), 0n);
    const [head, tail] = address.split('::').map(part => part ? part.split(':') : []);
    const words = tail ? [...head, ...new Array(8 - head.length - tail.length).fill('0'), ...tail] : head;
    return words.reduce((all, word) => all * 65536n + BigInt(`0x${word}`), 0n);
}
bindings.block_list = () => {
    class SocketAddress {
        constructor(address, port, family, flow) { this.detail_ = { address, port, family, flowlabel: flow }; }
        detail(into) { return Object.assign(into, this.detail_); }
        flowlabel() { return this.detail_.flowlabel; }
    }
    class BlockList {
        #rules = [];
        addAddress(one) { this.addRange(one, one); }
        addRange(from, to) {
            const family = from.detail_.family, low = number(from.detail_.address), high = number(to.detail_.address);
            if (low > high) return false;
            this.#rules.push({ family, low, high, text: `${from.detail_.address}-${to.detail_.address}` });
            return true;
        }
        addSubnet(net, prefix) {
            const { family, address } = net.detail_, bits = BigInt((family === 2 ? 32 : 128) - prefix);
            const low = number(address) >> bits << bits;
            this.#rules.push({ family, low, high: low + (1n << bits) - 1n, text: `${address}/${prefix}` });
        }
        check(one) {
            const { family, address } = one.detail_, value = number(address);
            return this.#rules.some(rule => rule.family === family && value >= rule.low && value <= rule.high);
        }
        getRules() { return this.#rules.map(rule => rule.text); }
    }
    return { BlockList, SocketAddress, AF_INET: 2, AF_INET6: 10 };
};

// HTTP/2 is not there; programs that only may use it load its module all the same.
bindings.http2 = () => {
    const none = name => class { constructor() { throw new Error(`HTTP/2 (${name}) is not there in this node`); } };
    return {
        constants: {}, nameForErrorCode: [], optionsBuffer: new Uint32Array(16), settingsBuffer: new Uint32Array(16),
        sessionState: new Float64Array(9), streamState: new Float64Array(6), paddingBuffer: new Uint32Array(3),
        sessionStats: new Float64Array(8), streamStats: new Float64Array(8), callbackMap: {},
        Http2Session: none('Http2Session'), Http2Stream: none('Http2Stream'), Http2Ping: none('Http2Ping'),
        setCallbackFunctions() {}, refreshDefaultSettings() {}, packSettings: none('packSettings'),
        kBitfield: 0, kSessionPriorityListenerCount: 1, kSessionFrameErrorListenerCount: 2, kSessionMaxInvalidFrames: 3,
        kSessionMaxRejectedStreams: 4, kSessionUint8FieldCount: 5,
    };
};
