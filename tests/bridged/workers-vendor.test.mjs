// The conformance list on Cloudflare's own bridge, in its own runtime (lib/instance.mjs is used). It has no
// list and no look-up, so what needs one of them is left out.

import { conform } from '../clouds/conformance.mjs';

await conform('workers-vendor', { without: ['list'] });
