// Hashes, keyed hashes, keys from passwords, random bytes and secret-key ciphers. Key pairs,
// certificates and TLS are not there.
'use strict';
const { crypto } = native;
const { bindings, AsyncWrap } = shared;
if (!crypto.hash) return;

const codes = ['ascii', 'utf8', 'base64', 'utf16le', 'latin1', 'hex', 'buffer', 'base64url'];
function bytes(data, encoding) {
    if (data instanceof KeyObjectHandle) return data.export();
    if (typeof data !== 'string') return data;
    const { Buffer } = shared.require('buffer');
    return Buffer.from(data, encoding === 'buffer' ? 'utf8' : encoding);
}
function output(memory, encoding) {
    const buffer = shared.buffer(memory);
    return encoding && encoding !== 'buffer' ? buffer.toString(encoding) : buffer;
}
function failure(message, code) { return Object.assign(new Error(message), code ? { code } : {}); }
const unsupported = name => failure(`${name} is not there in this node`, 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM');

class Hash extends AsyncWrap {
    #hash; #length; #digest;
    constructor(algorithm, length) {
        super('HASH');
        this.#hash = crypto.hash(algorithm instanceof Hash ? algorithm.#hash : algorithm);
        if (!this.#hash) throw failure('Digest method not supported', 'ERR_OSSL_EVP_UNSUPPORTED');
        this.#length = length ?? (algorithm instanceof Hash ? algorithm.#length : undefined);
        if (length !== undefined && !(algorithm instanceof Hash) && !/shake/i.test(algorithm) &&
            crypto.hash_digest(crypto.hash(algorithm), length) === undefined)
            throw failure('Unsupported state or unable to authenticate: not XOF', 'ERR_OSSL_EVP_NOT_XOF_OR_INVALID_LENGTH');
    }
    update(data, encoding) { return crypto.hash_update(this.#hash, bytes(data, encoding)); }
    digest(encoding) {
        this.#digest ??= crypto.hash_digest(this.#hash, this.#length);
        return output(this.#digest.slice(0), encoding);
    }
}
class Hmac extends AsyncWrap {
    #hmac;
    constructor() { super('HMAC'); }
    init(name, key) {
        this.#hmac = crypto.hmac(name, bytes(key));
        if (!this.#hmac) throw failure(`Invalid digest: ${name}`, 'ERR_CRYPTO_INVALID_DIGEST');
    }
    update(data, encoding) { return crypto.hmac_update(this.#hmac, bytes(data, encoding)); }
    digest(encoding) { return output(crypto.hmac_digest(this.#hmac), encoding); }
}

// Keys that are bytes.
class KeyObjectHandle {
    #bytes;
    init(kind, data) {
        if (kind !== 0) throw unsupported('a key pair');
        const view = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
        this.#bytes = view.slice();
    }
    getSymmetricKeySize() { return this.#bytes.length; }
    export() { return shared.buffer(this.#bytes.buffer.slice(0)); }
    exportJwk(into) {
        into.kty = 'oct';
        into.k = this.export().toString('base64url');
        return into;
    }
    initJwk(key) {
        const { Buffer } = shared.require('buffer');
        if (key.kty !== 'oct') throw unsupported('a key pair');
        this.#bytes = new Uint8Array(Buffer.from(key.k, 'base64url'));
        return 0;
    }
    equals(other) { return crypto.same(this.#bytes, other.#bytes); }
}

// Work that is done at once, or when the event loop is next at it.
class Job extends AsyncWrap {
    constructor(mode, ...list) {
        super('CRYPTOJOB');
        this.mode_ = mode;
        this.list_ = list;
    }
    run() {
        const work = () => {
            try {
                return [undefined, this.work(...this.list_)];
            } catch (error) {
                return [error, undefined];
            }
        };
        if (this.mode_ === 1) return work();
        shared.later(() => {
            const [error, result] = work();
            shared.callback(this, this.ondone, error, result);
        });
        return undefined;
    }
}
const job = work => class extends Job { work(...list) { return work(...list); } };
function fillRandomly(view) {
    const result = view.byteLength ? native.os.random_bytes(view) : 0;
    if (result < 0) throw shared.systemError(result, 'getrandom');
}
const RandomBytesJob = job((data, offset, size) => {
    const view = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset + offset, size)
        : new Uint8Array(data, offset, size);
    fillRandomly(view);
});
const PBKDF2Job = class extends Job {
    constructor(mode, password, salt, iterations, length, digest) {
        if (!crypto.hash(digest)) throw failure(`Invalid digest: ${digest}`, 'ERR_CRYPTO_INVALID_DIGEST');
        super(mode, bytes(password), bytes(salt), iterations, length, digest);
    }
    work(...list) { return crypto.pbkdf2(...list); }
};
const ScryptJob = job((password, salt, ...rest) => {
    const [N, r, p, most, length] = rest;
    const result = crypto.scrypt(bytes(password), bytes(salt), N, r, p, most, length);
    if (typeof result === 'string') throw failure(`Invalid scrypt params: ${result}`, 'ERR_CRYPTO_INVALID_SCRYPT_PARAMS');
    return result;
});
const HKDFJob = job((digest, key, salt, info, length) => {
    const result = crypto.hkdf(digest, bytes(key), salt, info, length);
    if (!result) throw failure('HKDF failed', 'ERR_CRYPTO_OPERATION_FAILED');
    return result;
});
const HashJob = job((name, data) => {
    const hash = crypto.hash(name);
    crypto.hash_update(hash, data);
    return crypto.hash_digest(hash, undefined);
});
const SecretKeyGenJob = job(size => {
    const data = new Uint8Array(size / 8);
    fillRandomly(data);
    const handle = new KeyObjectHandle();
    handle.init(0, data);
    return handle;
});

const modes = { 1: 'ecb', 2: 'cbc', 3: 'cfb', 4: 'ofb', 5: 'ctr', 6: 'gcm', 7: 'ccm', 0x10001: 'xts', 0x10002: 'wrap', 0x10003: 'ocb' };
// How many bytes of a tag NIST SP 800-38D lets GCM have.
const tagsOfGcm = [4, 8, 12, 13, 14, 15, 16];
class CipherBase extends AsyncWrap {
    #cipher; #encrypts; #done = false; #tag; #mode; #tagLength;
    constructor(encrypts) {
        super('CIPHER');
        this.#encrypts = encrypts;
    }
    #check(cipher) {
        if (typeof cipher !== 'string') return cipher;
        const code = { 'Unknown cipher': 'ERR_CRYPTO_UNKNOWN_CIPHER', 'Invalid key length': 'ERR_CRYPTO_INVALID_KEYLEN',
            'Invalid initialization vector': 'ERR_CRYPTO_INVALID_IV' }[cipher];
        throw Object.assign(code && code !== 'ERR_CRYPTO_UNKNOWN_CIPHER' ? new RangeError(cipher) : new Error(cipher),
            code ? { code } : {});
    }
    // Finds whether the mode has a tag, and how long it is. GCM's may be left open; OpenSSL is told
    // the length for the others.
    #authenticate(name, given) {
        const mode = modes[crypto.cipher_info(name)?.[5]];
        if (mode === 'ccm') throw unsupported(`the mode CCM (${name})`);
        this.#mode = mode === 'gcm' || mode === 'ocb' ? mode : /poly1305/i.test(name) ? 'poly1305' : undefined;
        if (!this.#mode) return undefined;
        if (this.#mode === 'ocb' && given < 0) throw this.#wrongTag(`authTagLength required for ${name}`);
        this.#tagLength = this.#mode === 'poly1305' && given < 0 ? 16 : given;
        if (given >= 0) this.#checkTag(given);
        return this.#mode === 'gcm' ? undefined : this.#tagLength;
    }
    #wrongTag(text) { return Object.assign(new TypeError(text), { code: 'ERR_CRYPTO_INVALID_AUTH_TAG' }); }
    // A short tag is easily guessed: the program says which length it takes, or GCM's rule does.
    #checkTag(size) {
        const good = this.#mode === 'gcm' ? tagsOfGcm.includes(size) && (this.#tagLength < 0 || size === this.#tagLength)
            : size === this.#tagLength && size > 0 && size <= 16;
        if (!good) throw this.#wrongTag(`Invalid authentication tag length: ${size}`);
    }
    initiv(name, key, iv, tagLength) {
        tagLength = this.#authenticate(name, tagLength);
        this.#cipher = this.#check(crypto.cipher(name, this.#encrypts, bytes(key), iv ?? undefined, tagLength));
    }
    init() { throw unsupported('createCipher'); }
    #step(data, only) {
        const result = crypto.cipher_step(this.#cipher, data, only);
        if (typeof result === 'string') {
            const found = /error:[^:]*:([^:]*):[^:]*:(.*)/.exec(result);
            throw failure(data === undefined && this.#tag ? 'Unsupported state or unable to authenticate data' : result,
                found ? `ERR_OSSL_${found[2].toUpperCase().replace(/\W+/g, '_')}` : undefined);
        }
        return shared.buffer(result);
    }
    update(data, encoding) { return this.#step(bytes(data, encoding), false); }
    final() {
        if (this.#done) throw failure('Unsupported state', 'ERR_CRYPTO_INVALID_STATE');
        if (!this.#encrypts && this.#mode && !this.#tag)
            throw failure('Unsupported state or unable to authenticate data');
        const last = this.#step(undefined, false);
        this.#done = true;
        return last;
    }
    setAutoPadding(on) { return crypto.cipher_control(this.#cipher, 'padding', on); }
    setAAD(data) { this.#step(data, true); return true; }
    getAuthTag() {
        if (!this.#done || !this.#encrypts || !this.#mode) return undefined;
        return shared.buffer(crypto.cipher_control(this.#cipher, 'tag', this.#tagLength < 0 ? 16 : this.#tagLength));
    }
    setAuthTag(tag) {
        if (this.#tag || this.#encrypts || !this.#mode) return false;
        const data = bytes(tag);
        this.#checkTag(data.byteLength);
        this.#tag = data;
        return crypto.cipher_control(this.#cipher, 'tag', data);
    }
}

// Programs that ask for https come to one of these.
class SecureContext {
    constructor() { throw unsupported('TLS, and so https,'); }
}
const missing = names => Object.fromEntries(names.trim().split(/\s+/).map(name =>
    [name, class { constructor() { throw unsupported(name); } }]));
const numbers = list => Object.fromEntries(list.trim().split(/\s+/).map((name, index) => [name, index]));

bindings.crypto = () => ({
    ...missing(`AESCipherJob HmacJob SignJob ECKeyExportJob RSACipherJob RSAKeyExportJob
        DhKeyPairGenJob DsaKeyPairGenJob EcKeyPairGenJob NidKeyPairGenJob RsaKeyPairGenJob
        RandomPrimeJob CheckPrimeJob ECDHBitsJob DiffieHellman DiffieHellmanGroup ECDH Sign Verify`),
    SecureContext,
    ...numbers('kKeyTypeSecret kKeyTypePublic kKeyTypePrivate'),
    ...numbers('kKeyFormatDER kKeyFormatPEM kKeyFormatJWK'),
    ...numbers('kKeyEncodingPKCS1 kKeyEncodingPKCS8 kKeyEncodingSPKI kKeyEncodingSEC1'),
    ...numbers('kCryptoJobAsync kCryptoJobSync'),
    ...numbers('kSigEncDER kSigEncP1363'),
    ...numbers('kSignJobModeSign kSignJobModeVerify'),
    ...numbers('kWebCryptoKeyFormatRaw kWebCryptoKeyFormatPKCS8 kWebCryptoKeyFormatSPKI'),
    ...numbers('kWebCryptoCipherEncrypt kWebCryptoCipherDecrypt'),
    Hash, Hmac, HashJob, RandomBytesJob, PBKDF2Job, ScryptJob, HKDFJob, SecretKeyGenJob, CipherBase,
    KeyObjectHandle,
    createNativeKeyObjectClass(make) {
        return make(class NativeKeyObject {
            constructor(handle) { this.handle = handle; }
        });
    },
    oneShotDigest(algorithm, id, cache, input, encoding) {
        const hash = crypto.hash(algorithm);
        if (!hash) throw failure('Digest method not supported', 'ERR_OSSL_EVP_UNSUPPORTED');
        crypto.hash_update(hash, bytes(input));
        return output(crypto.hash_digest(hash, undefined), encoding);
    },
    timingSafeEqual(a, b) {
        const { codes } = shared.require('internal/errors');
        for (const [name, value] of [['buf1', a], ['buf2', b]])
            if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer))
                throw new codes.ERR_INVALID_ARG_TYPE(name, ['ArrayBuffer', 'Buffer', 'TypedArray', 'DataView'], value);
        if (a.byteLength !== b.byteLength) throw new codes.ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH();
        return crypto.same(a, b);
    },
    getHashes: () => [...new Set(crypto.digests())],
    getCachedHashes: () => [], getCachedAliases: () => ({}),
    getCiphers: () => [...new Set(crypto.ciphers().map(name => name.toLowerCase()))].filter(name => !/ccm/.test(name)),
    getSSLCiphers: () => [], getCurves: () => [], getRootCertificates: () => [],
    getCipherInfo(into, name, keyLength, ivLength) {
        const found = typeof name === 'string' ? crypto.cipher_info(name) : undefined;
        if (!found) return undefined;
        const [text, nid, block, iv, key, mode] = found;
        if (keyLength !== undefined && keyLength !== key || ivLength !== undefined && iv && ivLength !== iv && mode < 6) return undefined;
        Object.assign(into, { mode: modes[mode] ?? 'stream', name: text.toLowerCase(), nid });
        if (mode !== 5 && mode !== 6 && block > 1) into.blockSize = block;
        if (iv) into.ivLength = ivLength ?? iv;
        into.keyLength = key;
        return into;
    },
    getFipsCrypto: () => 0, setFipsCrypto() { throw unsupported('FIPS'); }, testFipsCrypto: () => false,
    setEngine() { throw unsupported('an engine'); },
    secureHeapUsed: () => undefined, secureBuffer: size => new Uint8Array(size),
    publicEncrypt() { throw unsupported('publicEncrypt'); }, publicDecrypt() { throw unsupported('publicDecrypt'); },
    privateEncrypt() { throw unsupported('privateEncrypt'); }, privateDecrypt() { throw unsupported('privateDecrypt'); },
    certVerifySpkac() { throw unsupported('SPKAC'); }, certExportPublicKey() { throw unsupported('SPKAC'); },
    certExportChallenge() { throw unsupported('SPKAC'); }, parseX509() { throw unsupported('X509Certificate'); },
    ECDHConvertKey() { throw unsupported('ECDH'); }, statelessDH() { throw unsupported('Diffie-Hellman'); },
    X509_CHECK_FLAG_ALWAYS_CHECK_SUBJECT: 1, X509_CHECK_FLAG_NO_WILDCARDS: 2,
    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS: 4, X509_CHECK_FLAG_MULTI_LABEL_WILDCARDS: 8,
    X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS: 16, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT: 32,
    EVP_PKEY_ED25519: 1087, EVP_PKEY_ED448: 1088, EVP_PKEY_X25519: 1034, EVP_PKEY_X448: 1035,
    OPENSSL_EC_NAMED_CURVE: 1, OPENSSL_EC_EXPLICIT_CURVE: 0,
});
bindings.tls_wrap = () => ({ TLSWrap: class {}, wrap() { throw unsupported('TLS, and so https,'); }, HAVE_SSL_TRACE: false });
