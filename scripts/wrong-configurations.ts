/** `npm run wrong-configurations`: starts the programs with every wrong configuration and writes what they say to its page in docs/. */
import { fileURLToPath } from 'node:url'
import { PAGE, renderPage, tryAll } from '../test/config/wrong-configurations/render-page.js'
import { syncFiles } from './sync-files.js'

const endings: (() => unknown)[] = []
const tried = await tryAll({ teardown: (end: () => unknown) => void endings.push(end) } as Parameters<typeof tryAll>[0])
for (const end of endings.reverse()) await end()
const root = fileURLToPath(new URL('..', import.meta.url))
syncFiles(new Map([[PAGE, renderPage(tried)]]), { root, check: false, command: '`npm run wrong-configurations`' })
process.exit(0)
