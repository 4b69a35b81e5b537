/**
 * The provider's library, without the lines it prints to whoever runs it on an older Node.js or with its defaults:
 * between a test's own lines they would only hide the ones that matter.
 */
export async function loadProvider() {
  const say = { info: console.info, warn: console.warn }
  for (const kind of ['info', 'warn'] as const) {
    console[kind] = (...words: unknown[]) => {
      if (!String(words[0]).includes('oidc-provider')) say[kind](...words)
    }
  }
  return import('oidc-provider')
}
