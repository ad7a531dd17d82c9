// The conformance list on the user's own computer (lib/instance.mjs is used).

import { conform } from '../clouds/conformance.mjs';

await conform('tunnel');
