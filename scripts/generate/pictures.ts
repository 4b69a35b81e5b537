import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Generator } from './generator.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const SCRIPTS = ['page', 'app']

/**
 * Bundles the code of pictures for browsers (`pictures/browser/`) into `pictures/generated/`, from where it is read
 * when a page is written.
 */
export const pictures: Generator = {
  async files() {
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
    return new Map(
      outputFiles.map(({ path, text }) => {
        // This text would end the script element, wherever it occurs.
        if (/<\/script/i.test(text)) throw new Error(`${path} would end its own script element`)
        return [relative(root, path), text]
      }),
    )
  },
}
