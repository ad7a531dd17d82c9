// Requests and answers of a whole instance (CC_DEV_JSON) over TLS, nginx, FastCGI and MariaDB.
import { after } from 'node:test';

import { closeDatabase } from './instance.mjs';
import { closeAll } from './send.mjs';
import './cases.mjs';
import './generated.mjs';
import './raw.mjs';
import './fastcgi.mjs';
import './trouble.mjs';
import './table.mjs';

after(() => {
	closeAll();
	closeDatabase();
});
