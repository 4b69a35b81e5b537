/**
 * `npm run pictures`: bundles what pictures do in a browser (`pictures/browser/`) into `pictures/generated/`, from where it is read when a
 * page is written. `--check` only says whether they are current.
 */
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { syncFiles } from './sync-files.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const SCRIPTS = ['page', 'app']

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: SCRIPTS.map((name) => `pictures/browser/${name}.ts`),
  outdir: 'pictures/generated',
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: ['es2022'],
  charset: 'ascii',
  logLevel: 'error',
})
const wanted = new Map(
  outputFiles.map(({ path, text }) => {
    // An element ends at this, wherever it stands.
    if (/<\/script/i.test(text)) throw new Error(`${path} would end its own script element`)
    return [relative(root, path), text]
  }),
)
const fine = syncFiles(wanted, {
  root,
  check: process.argv.includes('--check'),
  command: '`npm run pictures`',
  // A line of them is a whole file.
  say: (line) => console.error(line.replace(/^(.{0,160}).*$/gm, '$1')),
})
process.exit(fine ? 0 : 1)
