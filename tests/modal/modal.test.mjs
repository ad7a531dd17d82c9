// The conformance list on modal, simulated (lib/instance.mjs is used).

import { conform } from '../clouds/conformance.mjs';

await conform('modal');
