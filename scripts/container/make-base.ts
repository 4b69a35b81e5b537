import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The programs that the Dockerfile runs, and that npm and a test need beside Node.js. */
const PROGRAMS = ['sh', 'env', 'install', 'ln', 'rm', 'ls', 'mkdir']
const NPM = '/usr/local/lib/node_modules/npm'

/**
 * Makes the root directory of an image like that of Node.js: `node`, npm, a shell and a few programs with the libraries
 * that they load, all of them copies from this machine. There is no registry of images here.
 */
export function makeBase(folder: string, node: string): void {
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(realpathSync(from), join(folder, to))
  }
  const paths = PROGRAMS.map((name) => [findProgram(name), `/bin/${name}`] as const)
  const programs = [...paths, [node, '/usr/local/bin/node'] as const]
  for (const [from, to] of programs) {
    put(from, to)
    for (const library of librariesOf(from)) put(library, library)
  }
  for (const library of librariesOfLibc()) put(library, library)
  for (const name of ['etc', 'root', 'tmp', 'usr/bin']) mkdirSync(join(folder, name), { recursive: true })
  chmodSync(join(folder, 'tmp'), 0o1777)
  // Scripts of packages begin with it.
  symlinkSync('/bin/env', join(folder, 'usr/bin/env'))
  cpSync(join(execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim(), 'npm'), join(folder, NPM), {
    recursive: true,
  })
  symlinkSync(`${NPM}/bin/npm-cli.js`, join(folder, 'usr/local/bin/npm'))
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n')
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\nnode:x:1000:\n')
}

const findProgram = (name: string) => execFileSync('which', [name], { encoding: 'utf8' }).trim()

/** Lists the libraries of libc, all of which an image has, because native modules load more of them than Node.js does. */
function librariesOfLibc(): string[] {
  const listed = execFileSync('dpkg', ['--listfiles', 'libc6'], { encoding: 'utf8' })
  return listed.split('\n').filter((path) => /^\/lib\/[^/]+\/lib[^/]+\.so\.[\d.]+$/.test(path))
}

function librariesOf(path: string): string[] {
  const listed = execFileSync('ldd', [path], { encoding: 'utf8' })
  return Array.from(listed.matchAll(/(\/\S+) \(0x/g), ([, library]) => library!)
}
