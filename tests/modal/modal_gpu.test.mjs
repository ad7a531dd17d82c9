// The list on jobs with a GPU at Modal, simulated: sandboxes of the first generation (lib/instance.mjs is used).

import { conform } from '../clouds/conformance.mjs';

await conform('modal-gpu');
