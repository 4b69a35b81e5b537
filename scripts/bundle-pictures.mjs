import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const SCRIPTS = ['page', 'app']

/**
 * Bundles the code of pictures for browsers (`pictures/browser/`) into `pictures/generated/`. Programs read it from
 * there when they write a page. A file that is already current is left unchanged. Rejects if the code does not compile.
 *
 * @param {string} root the folder of the project.
 */
export async function bundlePictures(root) {
  // In a fresh clone, this package is only available after the install at the beginning of the programs that call this.
  const { build } = await import('esbuild')
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
  for (const { path, text } of outputFiles) {
    // Anywhere in the script, this text would end the script element of the page.
    if (/<\/script/i.test(text)) throw new Error(`${path} would end its own script element`)
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeWhole(path, text)
  }
}

/** Writes a file under another name and then renames it, because programs may read the file in the meantime. */
function writeWhole(path, text) {
  const beside = join(dirname(path), `.${basename(path)}-${process.pid}`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(beside, text)
  renameSync(beside, path)
}
