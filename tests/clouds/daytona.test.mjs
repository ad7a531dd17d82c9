// The conformance list on daytona, simulated (lib/instance.mjs is used).

import { conform } from './conformance.mjs';

await conform('daytona');
