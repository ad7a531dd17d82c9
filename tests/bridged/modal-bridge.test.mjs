// The conformance list on our bridge for Modal, under Python (lib/instance.mjs is used). Without the matrix:
// the client is the one that goes through all of it against our runner.

import { conform } from '../clouds/conformance.mjs';

await conform('modal-bridge', { without: ['matrix'] });
