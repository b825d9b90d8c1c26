/* Translates Linux's errors to WASI's numbers, which are in alphabetical order. */
#include "wasi.h"

result_t error_of(int64_t returned)
{
	if (returned >= 0 || returned < -4095)
		return 0;
	switch (-returned) {
	case 1:
		return WASI_PERM;
	case 2:
		return WASI_NOENT;
	case 3:
		return 71; /* srch */
	case 4:
		return 27; /* intr */
	case 5:
		return WASI_IO;
	case 6:
		return 60; /* nxio */
	case 7:
		return 1; /* 2big */
	case 8:
		return 45; /* noexec */
	case 9:
		return WASI_BADF;
	case 10:
		return 12; /* child */
	case 11:
		return 6; /* again */
	case 12:
		return 48; /* nomem */
	case 13:
		return WASI_ACCES;
	case 14:
		return WASI_FAULT;
	case 16:
		return 10; /* busy */
	case 17:
		return 20; /* exist */
	case 18:
		return 75; /* xdev */
	case 19:
		return 43; /* nodev */
	case 20:
		return WASI_NOTDIR;
	case 21:
		return 31; /* isdir */
	case 22:
		return WASI_INVAL;
	case 23:
		return 41; /* nfile */
	case 24:
		return 33; /* mfile */
	case 25:
		return 59; /* notty */
	case 26:
		return 74; /* txtbsy */
	case 27:
		return 22; /* fbig */
	case 28:
		return 51; /* nospc */
	case 29:
		return 70; /* spipe */
	case 30:
		return 69; /* rofs */
	case 31:
		return 34; /* mlink */
	case 32:
		return 64; /* pipe */
	case 33:
		return 18; /* dom */
	case 34:
		return 68; /* range */
	case 35:
		return 16; /* deadlk */
	case 36:
		return WASI_NAMETOOLONG;
	case 37:
		return 46; /* nolck */
	case 38:
		return 52; /* nosys */
	case 39:
		return 55; /* notempty */
	case 40:
		return 32; /* loop */
	case 42:
		return 49; /* nomsg */
	case 43:
		return 24; /* idrm */
	case 67:
		return 47; /* nolink */
	case 71:
		return 65; /* proto */
	case 72:
		return 36; /* multihop */
	case 74:
		return 9; /* badmsg */
	case 75:
		return WASI_OVERFLOW;
	case 84:
		return WASI_ILSEQ;
	case 88:
		return 57; /* notsock */
	case 89:
		return 17; /* destaddrreq */
	case 90:
		return 35; /* msgsize */
	case 91:
		return 67; /* prototype */
	case 92:
		return 50; /* noprotoopt */
	case 93:
		return 66; /* protonosupport */
	case 95:
		return WASI_NOTSUP;
	case 97:
		return 5; /* afnosupport */
	case 98:
		return 3; /* addrinuse */
	case 99:
		return 4; /* addrnotavail */
	case 100:
		return 38; /* netdown */
	case 101:
		return 40; /* netunreach */
	case 102:
		return 39; /* netreset */
	case 103:
		return 13; /* connaborted */
	case 104:
		return 15; /* connreset */
	case 105:
		return 42; /* nobufs */
	case 106:
		return 30; /* isconn */
	case 107:
		return 53; /* notconn */
	case 110:
		return 73; /* timedout */
	case 111:
		return 14; /* connrefused */
	case 113:
		return 23; /* hostunreach */
	case 114:
		return 7; /* already */
	case 115:
		return 26; /* inprogress */
	case 116:
		return 72; /* stale */
	case 122:
		return 19; /* dquot */
	case 125:
		return 11; /* canceled */
	case 130:
		return 62; /* ownerdead */
	case 131:
		return 56; /* notrecoverable */
	default:
		return WASI_IO;
	}
}
