// URLs, as the WHATWG's standard parses them.
'use strict';
const { bindings } = shared;

const ports = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443, 'ftp:': 21, 'file:': null };
const special = scheme => Object.hasOwn(ports, scheme);
const types = ['http:', ' ', 'https:', 'ws:', 'ftp:', 'wss:', 'file:'];
const NONE = 0xffffffff;

const C0 = /[\0-\x1f\x7f-\u{10ffff}]/u;
const sets = {
    c0: C0,
    fragment: new RegExp(`${C0.source}|[ "<>\`]`, 'u'),
    query: new RegExp(`${C0.source}|[ "#<>]`, 'u'),
    specialQuery: new RegExp(`${C0.source}|[ "#<>']`, 'u'),
    path: new RegExp(`${C0.source}|[ "#<>?\`{}^]`, 'u'),
    userinfo: new RegExp(`${C0.source}|[ "#<>?\`{}/:;=@[\\\\\\]^|]`, 'u'),
};
function escape(text, set) {
    let out = '';
    for (const c of text) {
        if (!set.test(c)) out += c;
        else for (const byte of new Uint8Array(native.buffer.fromString(c, 1)))
            out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    }
    return out;
}
function unescape(text) {
    if (!text.includes('%')) return text;
    const data = new Uint8Array(native.buffer.fromString(text, 1)), out = [];
    for (let i = 0; i < data.length; i++) {
        const hex = data[i] === 37 ? String.fromCharCode(...data.subarray(i + 1, i + 3)) : '';
        if (/^[0-9a-f]{2}$/i.test(hex)) out.push(parseInt(hex, 16)), i += 2;
        else out.push(data[i]);
    }
    return native.buffer.toString(new Uint8Array(out), 1);
}

function number4(part) {
    if (part === '') return NaN;
    let radix = 10;
    if (/^0x/i.test(part)) radix = 16, part = part.slice(2);
    else if (part.length > 1 && part[0] === '0') radix = 8, part = part.slice(1);
    if (part === '') return 0;
    const digits = { 8: /^[0-7]+$/, 10: /^[0-9]+$/, 16: /^[0-9a-f]+$/i }[radix];
    return digits.test(part) ? parseInt(part, radix) : NaN;
}
// An IPv4 address as text; undefined if the host is none, null if it is a wrong one.
function address4(host) {
    const parts = host.split('.');
    if (parts.at(-1) === '' && parts.length > 1) parts.pop();
    const last = parts.at(-1);
    if (!/^[0-9]+$/.test(last) && !/^0x[0-9a-f]*$/i.test(last)) return undefined;
    if (parts.length > 4) return null;
    const numbers = parts.map(number4);
    if (numbers.some(Number.isNaN)) return null;
    if (numbers.slice(0, -1).some(n => n > 255)) return null;
    if (numbers.at(-1) >= 256 ** (5 - numbers.length)) return null;
    let value = numbers.at(-1);
    numbers.slice(0, -1).forEach((n, index) => { value += n * 256 ** (3 - index); });
    return [24, 16, 8, 0].map(bits => Math.floor(value / 2 ** bits) % 256).join('.');
}
function address6(text) {
    if (/[^0-9a-f:.]/i.test(text)) return null;
    const four = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
    if (four) {
        const parts = four[2].split('.');
        if (parts.some(part => part > 255 || part.length > 1 && part[0] === '0')) return null;
        const hex = i => ((parts[i] << 8) + Number(parts[i + 1])).toString(16);
        text = `${four[1]}${hex(0)}:${hex(2)}`;
    }
    const halves = text.split('::');
    if (halves.length > 2) return null;
    const pieces = halves.map(half => half === '' ? [] : half.split(':'));
    if (pieces.flat().some(piece => !/^[0-9a-f]{1,4}$/i.test(piece))) return null;
    const count = pieces.flat().length;
    if (halves.length === 1 ? count !== 8 : count > 7) return null;
    const words = (halves.length === 1 ? pieces[0]
        : [...pieces[0], ...new Array(8 - count).fill('0'), ...pieces[1]]).map(word => parseInt(word, 16));
    let best = -1, length = 1;
    for (let i = 0; i < 8; i++) {
        let n = 0;
        while (i + n < 8 && words[i + n] === 0) n++;
        if (n > length) best = i, length = n;
    }
    let out = '';
    for (let i = 0; i < 8; i++) {
        if (i === best) {
            out += i === 0 ? '::' : ':';
            i += length - 1;
            continue;
        }
        out += words[i].toString(16) + (i < 7 ? ':' : '');
    }
    return `[${out}]`;
}
const forbidden = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const forbiddenDomain = /[\0-\x20"#%/:<>?@[\\\]^{|}\x7f]/;
function toASCII(domain) {
    if (/^[\0-\x7f]*$/.test(domain) && !/(^|\.)xn--/i.test(domain)) return domain.toLowerCase();
    const { toASCII, toUnicode } = shared.require('punycode');
    try {
        const text = domain.normalize('NFKC').toLowerCase().replace(/[\u00ad\u200b\u2060\ufe00-\ufe0f]/g, '')
            .replace(/[\u3002\uff0e\uff61]/g, '.').normalize('NFC');
        for (const label of text.split('.')) if (label.startsWith('xn--') && /[^\0-\x7f]/.test(toUnicode(label)) === false) return null;
        return toASCII(text);
    } catch {
        return null;
    }
}
// A host as it is written, or null.
function host(text, opaque) {
    if (text[0] === '[') return text.at(-1) === ']' ? address6(text.slice(1, -1)) : null;
    if (opaque) return forbidden.test(text) ? null : escape(text, sets.c0);
    const domain = toASCII(unescape(text));
    if (domain === null || domain === '' || forbiddenDomain.test(domain)) return null;
    const four = address4(domain);
    return four === undefined ? domain : four;
}

const letter = /^[A-Za-z]:$|^[A-Za-z]\|$/;
const dot = part => /^(\.|%2e)$/i.test(part), dots = part => /^(\.|%2e){2}$/i.test(part);
function shorten(url) {
    if (url.scheme === 'file:' && url.path.length === 1 && /^[A-Za-z]:$/.test(url.path[0])) return;
    url.path.pop();
}
function appendPath(url, text) {
    const split = special(url.scheme) ? /[/\\]/ : /\//;
    const parts = text.split(split);
    parts.forEach((part, index) => {
        const last = index === parts.length - 1;
        if (dots(part)) {
            shorten(url);
            if (last) url.path.push('');
        } else if (dot(part)) {
            if (last) url.path.push('');
        } else {
            if (url.scheme === 'file:' && url.path.length === 0 && letter.test(part)) part = `${part[0]}:`;
            url.path.push(escape(part, sets.path));
        }
    });
}
function setAuthority(url, text) {
    const at = text.lastIndexOf('@');
    if (at >= 0) {
        const info = text.slice(0, at), colon = info.indexOf(':');
        url.username = escape(colon < 0 ? info : info.slice(0, colon), sets.userinfo);
        url.password = colon < 0 ? '' : escape(info.slice(colon + 1), sets.userinfo);
        text = text.slice(at + 1);
        if (text === '' || text[0] === ':') return false;
    }
    return setHost(url, text, true);
}
function setHost(url, text, withPort) {
    const found = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text);
    if (!found) return false;
    if (found[1] === '' && (special(url.scheme) || found[2] !== undefined && found[2] !== '')) return false;
    const value = found[1] === '' ? '' : host(found[1], !special(url.scheme));
    if (value === null) return false;
    url.host = value;
    return !withPort || found[2] === undefined || setPort(url, found[2], true);
}
function setPort(url, text, whole) {
    const digits = /^[0-9]*/.exec(text)[0];
    if (whole && digits.length !== text.length) return false;
    if (digits === '') return whole || text === '' ? (url.port = null, true) : false;
    const value = Number(digits);
    if (value > 65535) return false;
    url.port = value === ports[url.scheme] ? null : value;
    return true;
}
const fresh = scheme => ({ scheme, username: '', password: '', host: null, port: null, path: [], opaque: null, query: null, fragment: null });

// The parts of a URL; undefined if it is none.
function parse(input, base) {
    let text = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '').toWellFormed();
    let fragment = null, query = null;
    const cut = mark => {
        const at = text.indexOf(mark);
        if (at < 0) return null;
        const rest = text.slice(at + 1);
        text = text.slice(0, at);
        return rest;
    };
    fragment = cut('#');
    query = cut('?');
    const found = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text);
    let url;
    const finish = () => {
        if (query !== null) url.query = escape(query, special(url.scheme) ? sets.specialQuery : sets.query);
        if (fragment !== null) url.fragment = escape(fragment, sets.fragment);
        return url;
    };
    if (found) {
        const scheme = `${found[1].toLowerCase()}:`;
        let rest = text.slice(found[0].length);
        url = fresh(scheme);
        if (scheme === 'file:') return file(rest);
        if (special(scheme)) {
            if (base && base.scheme === scheme && !/^[/\\]{2}/.test(rest)) return relative(rest);
            rest = rest.replace(/^[/\\]*/, '');
            return authority(rest);
        }
        if (rest.startsWith('//')) return authority(rest.slice(2));
        if (rest.startsWith('/')) {
            appendPath(url, rest.slice(1));
            return finish();
        }
        url.opaque = escape(rest, sets.c0).replace(/ $/, query !== null || fragment !== null ? '%20' : ' ');
        return finish();
    }
    if (!base) return undefined;
    if (base.opaque !== null) {
        if (text !== '' || query !== null || fragment === null) return undefined;
        url = { ...base, path: [] };
        return finish();
    }
    return base.scheme === 'file:' ? (url = fresh('file:'), file(text)) : relative(text);

    function authority(rest) {
        const end = rest.search(special(url.scheme) ? /[/\\]/ : /\//);
        if (!setAuthority(url, end < 0 ? rest : rest.slice(0, end))) return undefined;
        if (end >= 0) appendPath(url, rest.slice(end + 1));
        else if (special(url.scheme)) url.path.push('');
        return finish();
    }
    function relative(rest) {
        url = fresh(base.scheme);
        const slash = special(base.scheme) ? /^[/\\]/ : /^\//;
        if (slash.test(rest) && slash.test(rest.slice(1)))
            return authority(special(base.scheme) ? rest.replace(/^[/\\]+/, '') : rest.slice(2));
        Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port });
        if (slash.test(rest)) {
            appendPath(url, rest.slice(1));
            return finish();
        }
        url.path = [...base.path];
        if (rest === '') {
            if (query === null) url.query = base.query;
            return finish();
        }
        shorten(url);
        appendPath(url, rest);
        return finish();
    }
    function file(rest) {
        const from = base?.scheme === 'file:' ? base : null;
        url.host = '';
        if (/^[/\\]{2}/.test(rest)) {
            rest = rest.slice(2);
            const end = rest.search(/[/\\]/), name = end < 0 ? rest : rest.slice(0, end);
            if (letter.test(name)) {
                appendPath(url, rest);
                return finish();
            }
            if (name !== '') {
                const value = host(name, false);
                if (value === null) return undefined;
                url.host = value === 'localhost' ? '' : value;
            }
            if (end >= 0) appendPath(url, rest.slice(end + 1));
            else url.path.push('');
            return finish();
        }
        if (/^[/\\]/.test(rest)) {
            if (from) {
                url.host = from.host;
                if (/^[A-Za-z]:$/.test(from.path[0] ?? '') && !/^[/\\][A-Za-z][:|]([/\\]|$)/.test(rest)) url.path.push(from.path[0]);
            }
            appendPath(url, rest.slice(1));
            return finish();
        }
        if (from) {
            url.host = from.host;
            url.path = [...from.path];
            if (rest === '') {
                if (query === null) url.query = from.query;
                return finish();
            }
            if (/^[A-Za-z][:|]([/\\]|$)/.test(rest)) url.path = [];
            else shorten(url);
        }
        appendPath(url, rest);
        return finish();
    }
}

const components = new Uint32Array(9);
// The text of a URL, and where its parts are in it.
function serialize(url) {
    let text = url.scheme;
    components.fill(NONE);
    components[0] = text.length;
    if (url.host !== null) {
        text += '//';
        text += url.username;
        components[1] = text.length;
        if (url.password) text += `:${url.password}`;
        components[2] = text.length;
        if (url.username || url.password) text += '@';
        text += url.host;
        components[3] = text.length;
        if (url.port !== null) text += `:${url.port}`, components[4] = url.port;
    } else {
        components[1] = components[2] = components[3] = text.length;
        if (url.opaque === null && url.path.length > 1 && url.path[0] === '') text += '/.';
    }
    components[5] = text.length;
    text += url.opaque ?? url.path.map(part => `/${part}`).join('');
    if (url.query !== null) components[6] = text.length, text += `?${url.query}`;
    if (url.fragment !== null) components[7] = text.length, text += `#${url.fragment}`;
    const type = types.indexOf(url.scheme);
    components[8] = type < 0 ? 1 : type;
    return text;
}

const noCredentials = url => url.host === null || url.host === '' || url.scheme === 'file:';
// The work of URL's setters, by the library's numbers for them. False: the value is refused.
const setters = [
    function protocol(url, value) {
        const found = /^([A-Za-z][A-Za-z0-9+.-]*)(:|$)/.exec(value);
        if (!found) return;
        const scheme = `${found[1].toLowerCase()}:`;
        if (special(scheme) !== special(url.scheme)) return;
        if (scheme === 'file:' && (url.username || url.password || url.port !== null)) return;
        if (url.scheme === 'file:' && url.host === '') return;
        url.scheme = scheme;
        if (url.port === ports[scheme]) url.port = null;
    },
    function host(url, value) {
        if (url.opaque !== null) return;
        const end = value.search(special(url.scheme) ? /[/\\?#]/ : /[/?#]/);
        const text = end < 0 ? value : value.slice(0, end);
        const [, name, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text) ?? [];
        if (name === undefined || name === '' && (special(url.scheme) && url.scheme !== 'file:' || url.username || url.port !== null)) return;
        const copy = { ...url };
        if (name === '' ? (copy.host = '', false) : !setHost(copy, name, false)) return;
        if (copy.scheme === 'file:' && copy.host === 'localhost') copy.host = '';
        url.host = copy.host;
        if (port && url.scheme !== 'file:') setPort(url, port, false);
    },
    function hostname(url, value) {
        if (url.opaque !== null || /^[^[].*:|^:/.test(value.split(/[/?#]/)[0])) return;
        setters[1](url, value);
    },
    function port(url, value) {
        if (noCredentials(url)) return;
        setPort(url, value, false);
    },
    function username(url, value) { if (!noCredentials(url)) url.username = escape(value, sets.userinfo); },
    function password(url, value) { if (!noCredentials(url)) url.password = escape(value, sets.userinfo); },
    function pathname(url, value) {
        if (url.opaque !== null) return;
        url.path = [];
        const rest = special(url.scheme) ? value.replace(/^[/\\]/, '') : value.replace(/^\//, '');
        appendPath(url, rest);
        for (let i = 0; i < url.path.length; i++) url.path[i] = url.path[i].replaceAll('?', '%3F').replaceAll('#', '%23');
    },
    function search(url, value) {
        url.query = value === '' ? null
            : escape(value.replace(/^\?/, ''), special(url.scheme) ? sets.specialQuery : sets.query);
    },
    function hash(url, value) {
        url.fragment = value === '' ? null : escape(value.replace(/^#/, ''), sets.fragment);
    },
];

bindings.url = () => {
    const parsed = (input, base) => {
        const from = base === undefined ? undefined : parse(base);
        return base !== undefined && !from ? undefined : parse(input, from);
    };
    return {
        urlComponents: components,
        parse(input, base, throws) {
            const url = parsed(`${input}`, base === undefined ? undefined : `${base}`);
            if (url) return serialize(url);
            if (!throws) return undefined;
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_INVALID_URL(`${input}`, base);
        },
        canParse: (input, base) => Boolean(parsed(input, base)),
        update(href, action, value) {
            value = `${value}`.replace(/[\t\n\r]/g, '').toWellFormed();
            if (action === 9) {
                const url = parse(value);
                return url ? serialize(url) : false;
            }
            const url = parse(href);
            setters[action](url, value);
            return serialize(url);
        },
        format(href, hash, unicode, search, auth) {
            const url = parse(href);
            if (!hash) url.fragment = null;
            if (unicode && url.host) url.host = shared.require('punycode').toUnicode(url.host);
            if (!search) url.query = null;
            if (!auth) url.username = url.password = '';
            return serialize(url);
        },
        domainToASCII: text => host(text, false) ?? '',
        domainToUnicode(text) {
            const value = host(text, false);
            return value === null ? '' : shared.require('punycode').toUnicode(value);
        },
        getOrigin(href) {
            const url = parse(href);
            return special(url.scheme) && url.scheme !== 'file:'
                ? `${url.scheme}//${url.host}${url.port === null ? '' : `:${url.port}`}` : 'null';
        },
        pathToFileURL(path, windows, hash) {
            const url = parse(`file://${escape(path, sets.path).replaceAll('?', '%3F').replaceAll('#', '%23')}`);
            return serialize(url);
        },
    };
};
