// Hashes, keyed hashes, keys from passwords, and ciphers with secret keys: OpenSSL's.
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

static JSClassID hash_class, hmac_class, cipher_class;

static void collect_hash(JSRuntime *rt, JSValueConst object)
{
	EVP_MD_CTX_free(JS_GetOpaque(object, hash_class));
}

static void collect_hmac(JSRuntime *rt, JSValueConst object)
{
	HMAC_CTX_free(JS_GetOpaque(object, hmac_class));
}

static void collect_cipher(JSRuntime *rt, JSValueConst object)
{
	EVP_CIPHER_CTX_free(JS_GetOpaque(object, cipher_class));
}

static const EVP_MD *digest_of(JSContext *ctx, JSValueConst value)
{
	const char *name = JS_ToCString(ctx, value);
	const EVP_MD *digest = name ? EVP_get_digestbyname(name) : NULL;
	JS_FreeCString(ctx, name);
	return digest;
}

// OpenSSL's own words for its last error.
static JSValue problem(JSContext *ctx)
{
	char text[256] = "error in OpenSSL";
	unsigned long code = ERR_get_error();
	if (code)
		ERR_error_string_n(code, text, sizeof text);
	ERR_clear_error();
	return JS_NewString(ctx, text);
}

// hash(name or another hash): undefined if there is none of that name.
static JSValue hash(ARGS)
{
	EVP_MD_CTX *state = EVP_MD_CTX_new();
	EVP_MD_CTX *other = JS_IsObject(argv[0]) ? JS_GetOpaque(argv[0], hash_class) : NULL;
	const EVP_MD *digest = other ? NULL : digest_of(ctx, argv[0]);
	if (other ? !EVP_MD_CTX_copy_ex(state, other) : !digest || !EVP_DigestInit_ex(state, digest, NULL)) {
		EVP_MD_CTX_free(state);
		ERR_clear_error();
		return JS_UNDEFINED;
	}
	JSValue object = JS_NewObjectClass(ctx, hash_class);
	JS_SetOpaque(object, state);
	return object;
}

static JSValue hash_update(ARGS)
{
	size_t length;
	EVP_MD_CTX *state = JS_GetOpaque2(ctx, argv[0], hash_class);
	uint8_t *data = bytes_of(ctx, argv[1], &length);
	if (!state || !data)
		return JS_EXCEPTION;
	return JS_NewBool(ctx, EVP_DigestUpdate(state, data, length));
}

// hash_digest(hash, length): of functions that have no length of their own, that many bytes.
static JSValue hash_digest(ARGS)
{
	EVP_MD_CTX *state = JS_GetOpaque2(ctx, argv[0], hash_class);
	if (!state)
		return JS_EXCEPTION;
	unsigned size = EVP_MD_CTX_size(state);
	double wanted = JS_IsUndefined(argv[1]) ? size : number_of(ctx, argv[1]);
	bool xof = EVP_MD_get_flags(EVP_MD_CTX_get0_md(state)) & EVP_MD_FLAG_XOF;
	if (!(wanted >= 0 && wanted < 1 << 30) || (!xof && wanted != size))
		return JS_UNDEFINED;
	uint8_t *out = got(malloc(wanted > size ? wanted : size + 1));
	int good = xof ? !wanted || EVP_DigestFinalXOF(state, out, wanted) : EVP_DigestFinal_ex(state, out, &size);
	if (!good) {
		free(out);
		return JS_UNDEFINED;
	}
	return own_bytes(ctx, out, wanted);
}

// hmac(name, key)
static JSValue hmac(ARGS)
{
	size_t length;
	const EVP_MD *digest = digest_of(ctx, argv[0]);
	uint8_t *key = bytes_of(ctx, argv[1], &length);
	if (!key)
		return JS_EXCEPTION;
	HMAC_CTX *state = HMAC_CTX_new();
	if (!digest || !HMAC_Init_ex(state, length ? key : (uint8_t *)"", length, digest, NULL)) {
		HMAC_CTX_free(state);
		ERR_clear_error();
		return JS_UNDEFINED;
	}
	JSValue object = JS_NewObjectClass(ctx, hmac_class);
	JS_SetOpaque(object, state);
	return object;
}

static JSValue hmac_update(ARGS)
{
	size_t length;
	HMAC_CTX *state = JS_GetOpaque2(ctx, argv[0], hmac_class);
	uint8_t *data = bytes_of(ctx, argv[1], &length);
	if (!state || !data)
		return JS_EXCEPTION;
	return JS_NewBool(ctx, HMAC_Update(state, data, length));
}

static JSValue hmac_digest(ARGS)
{
	HMAC_CTX *state = JS_GetOpaque2(ctx, argv[0], hmac_class);
	unsigned size = EVP_MAX_MD_SIZE;
	if (!state)
		return JS_EXCEPTION;
	uint8_t *out = got(malloc(EVP_MAX_MD_SIZE));
	if (!HMAC_Final(state, out, &size)) {
		free(out);
		return JS_UNDEFINED;
	}
	return own_bytes(ctx, out, size);
}

#define BYTES(name, value) \
	size_t name##_length; \
	uint8_t *name = bytes_of(ctx, value, &name##_length); \
	if (!name) \
	return JS_EXCEPTION

// pbkdf2(password, salt, iterations, length, digest): bytes, or undefined.
static JSValue pbkdf2(ARGS)
{
	BYTES(password, argv[0]);
	BYTES(salt, argv[1]);
	const EVP_MD *digest = digest_of(ctx, argv[4]);
	double length = number_of(ctx, argv[3]);
	if (!digest || !(length >= 0 && length < 1 << 30))
		return JS_UNDEFINED;
	uint8_t *out = got(malloc(length + 1));
	if (length &&
	    !PKCS5_PBKDF2_HMAC(
		(char *)password, password_length, salt, salt_length, int_of(ctx, argv[2]), digest, length, out)) {
		free(out);
		return JS_UNDEFINED;
	}
	return own_bytes(ctx, out, length);
}

// scrypt(password, salt, N, r, p, most memory, length)
static JSValue scrypt(ARGS)
{
	BYTES(password, argv[0]);
	BYTES(salt, argv[1]);
	double length = number_of(ctx, argv[6]);
	if (!(length >= 0 && length < 1 << 30))
		return JS_UNDEFINED;
	uint8_t *out = got(malloc(length + 1));
	if (EVP_PBE_scrypt((char *)password, password_length, salt, salt_length, number_of(ctx, argv[2]),
		number_of(ctx, argv[3]), number_of(ctx, argv[4]), number_of(ctx, argv[5]), length ? out : NULL,
		length) != 1) {
		free(out);
		return problem(ctx);
	}
	return own_bytes(ctx, out, length);
}

// hkdf(digest, key, salt, info, length)
static JSValue hkdf(ARGS)
{
	BYTES(key, argv[1]);
	BYTES(salt, argv[2]);
	BYTES(info, argv[3]);
	size_t length = number_of(ctx, argv[4]);
	const EVP_MD *digest = digest_of(ctx, argv[0]);
	EVP_PKEY_CTX *state = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
	uint8_t *out = length < 1 << 30 ? malloc(length + 1) : NULL;
	bool good = digest && out && EVP_PKEY_derive_init(state) > 0 && EVP_PKEY_CTX_set_hkdf_md(state, digest) > 0 &&
	    EVP_PKEY_CTX_set1_hkdf_salt(state, salt, salt_length) > 0 &&
	    EVP_PKEY_CTX_set1_hkdf_key(state, key_length ? key : (uint8_t *)"", key_length) > 0 &&
	    EVP_PKEY_CTX_add1_hkdf_info(state, info, info_length) > 0 &&
	    (!length || EVP_PKEY_derive(state, out, &length) > 0);
	EVP_PKEY_CTX_free(state);
	ERR_clear_error();
	if (good)
		return own_bytes(ctx, out, length);
	free(out);
	return JS_UNDEFINED;
}

static JSValue same(ARGS)
{
	BYTES(a, argv[0]);
	BYTES(b, argv[1]);
	return JS_NewBool(ctx, a_length == b_length && !CRYPTO_memcmp(a, b, a_length));
}

// cipher_info(name): [name, block, iv, key, mode], or undefined.
static JSValue cipher_info(ARGS)
{
	const char *name = JS_ToCString(ctx, argv[0]);
	const EVP_CIPHER *cipher = name ? EVP_get_cipherbyname(name) : NULL;
	JS_FreeCString(ctx, name);
	if (!cipher)
		return JS_UNDEFINED;
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewString(ctx, OBJ_nid2sn(EVP_CIPHER_nid(cipher))));
	int values[] = { EVP_CIPHER_nid(cipher), EVP_CIPHER_block_size(cipher), EVP_CIPHER_iv_length(cipher),
		EVP_CIPHER_key_length(cipher), EVP_CIPHER_mode(cipher) };
	for (int i = 0; i < 5; i++)
		JS_SetPropertyUint32(ctx, list, i + 1, JS_NewInt32(ctx, values[i]));
	return list;
}

// cipher(name, encrypts, key, iv, tag length): a text is what went wrong. The length is undefined
// where the mode asks for none before it begins.
static JSValue cipher(ARGS)
{
	const char *name = JS_ToCString(ctx, argv[0]);
	const EVP_CIPHER *kind = name ? EVP_get_cipherbyname(name) : NULL;
	size_t iv_length = 0;
	JS_FreeCString(ctx, name);
	BYTES(key, argv[2]);
	uint8_t *iv = JS_IsObject(argv[3]) ? bytes_of(ctx, argv[3], &iv_length) : NULL;
	if (!kind)
		return JS_NewString(ctx, "Unknown cipher");
	if (key_length != (size_t)EVP_CIPHER_key_length(kind))
		return JS_NewString(ctx, "Invalid key length");
	bool authenticated = EVP_CIPHER_flags(kind) & EVP_CIPH_FLAG_AEAD_CIPHER;
	if (!authenticated && iv_length != (size_t)EVP_CIPHER_iv_length(kind))
		return JS_NewString(ctx, "Invalid initialization vector");
	EVP_CIPHER_CTX *state = EVP_CIPHER_CTX_new();
	int encrypts = JS_ToBool(ctx, argv[1]), tag_length = int_of(ctx, argv[4]);
	if (EVP_CIPHER_mode(kind) == EVP_CIPH_WRAP_MODE)
		EVP_CIPHER_CTX_set_flags(state, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	if (!EVP_CipherInit_ex(state, kind, NULL, NULL, NULL, encrypts) ||
	    (authenticated && !EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_IVLEN, iv_length, NULL)) ||
	    (authenticated && tag_length > 0 && !EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_TAG, tag_length, NULL)) ||
	    !EVP_CipherInit_ex(state, NULL, NULL, key, iv, encrypts)) {
		EVP_CIPHER_CTX_free(state);
		return problem(ctx);
	}
	JSValue object = JS_NewObjectClass(ctx, cipher_class);
	JS_SetOpaque(object, state);
	return object;
}

// cipher_step(cipher, bytes, more): bytes, or a text that says what went wrong. Bytes are undefined
// at the end; `more` says that they are authenticated only.
static JSValue cipher_step(ARGS)
{
	EVP_CIPHER_CTX *state = JS_GetOpaque2(ctx, argv[0], cipher_class);
	int size = 0;
	size_t length = 0;
	uint8_t *data = JS_IsUndefined(argv[1]) ? NULL : bytes_of(ctx, argv[1], &length);
	if (!state || (!data && !JS_IsUndefined(argv[1])))
		return JS_EXCEPTION;
	uint8_t *out = got(malloc(length + 2 * EVP_MAX_BLOCK_LENGTH + 16));
	int good = !data              ? EVP_CipherFinal_ex(state, out, &size)
	    : JS_ToBool(ctx, argv[2]) ? EVP_CipherUpdate(state, NULL, &size, data, length)
				      : EVP_CipherUpdate(state, out, &size, data, length);
	if (!good) {
		free(out);
		return problem(ctx);
	}
	return own_bytes(ctx, out, size);
}

// cipher_control(cipher, which, value): "padding"; "tag" sets one, or returns one of that length.
static JSValue cipher_control(ARGS)
{
	EVP_CIPHER_CTX *state = JS_GetOpaque2(ctx, argv[0], cipher_class);
	const char *which = JS_ToCString(ctx, argv[1]);
	if (!state || !which)
		return JS_EXCEPTION;
	bool padding = !strcmp(which, "padding");
	JS_FreeCString(ctx, which);
	if (padding)
		return JS_NewBool(ctx, EVP_CIPHER_CTX_set_padding(state, JS_ToBool(ctx, argv[2])));
	if (JS_IsNumber(argv[2])) {
		uint8_t tag[16];
		int length = int_of(ctx, argv[2]);
		if (length < 1 || length > 16 || !EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_GET_TAG, length, tag))
			return JS_UNDEFINED;
		return JS_NewArrayBufferCopy(ctx, tag, length);
	}
	BYTES(tag, argv[2]);
	return JS_NewBool(ctx, EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_TAG, tag_length, tag));
}

struct names {
	JSContext *ctx;
	JSValue list;
	uint32_t count;
};

static void add_name(const char *name, void *data)
{
	struct names *names = data;
	JS_SetPropertyUint32(names->ctx, names->list, names->count++, JS_NewString(names->ctx, name));
}

static void add_digest(const EVP_MD *digest, const char *name, const char *alias, void *data)
{
	if (name && digest)
		add_name(name, data);
}

static void add_cipher(const EVP_CIPHER *cipher, const char *name, const char *alias, void *data)
{
	if (name && cipher)
		add_name(name, data);
}

static JSValue digests(ARGS)
{
	struct names names = { ctx, JS_NewArray(ctx) };
	EVP_MD_do_all_sorted(add_digest, &names);
	return names.list;
}

static JSValue ciphers(ARGS)
{
	struct names names = { ctx, JS_NewArray(ctx) };
	EVP_CIPHER_do_all_sorted(add_cipher, &names);
	return names.list;
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(hash, 1),
	FUNCTION(hash_update, 2),
	FUNCTION(hash_digest, 2),
	FUNCTION(hmac, 2),
	FUNCTION(hmac_update, 2),
	FUNCTION(hmac_digest, 1),
	FUNCTION(pbkdf2, 5),
	FUNCTION(scrypt, 7),
	FUNCTION(hkdf, 5),
	FUNCTION(same, 2),
	FUNCTION(cipher_info, 1),
	FUNCTION(cipher, 5),
	FUNCTION(cipher_step, 3),
	FUNCTION(cipher_control, 3),
	FUNCTION(digests, 0),
	FUNCTION(ciphers, 0),
	JS_PROP_STRING_DEF("version", OPENSSL_VERSION_STR, JS_PROP_ENUMERABLE),
};

static void new_class(JSContext *ctx, JSClassID *id, const char *name, JSClassFinalizer *finalizer)
{
	JSClassDef class = { name, .finalizer = finalizer };
	JS_NewClassID(JS_GetRuntime(ctx), id);
	JS_NewClass(JS_GetRuntime(ctx), *id, &class);
}

JSValue crypto_functions(JSContext *ctx)
{
	new_class(ctx, &hash_class, "Hash", collect_hash);
	new_class(ctx, &hmac_class, "Hmac", collect_hmac);
	new_class(ctx, &cipher_class, "Cipher", collect_cipher);
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
