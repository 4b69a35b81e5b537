/** Which methods each path takes; the rest answers 405 (RFC 9110, 15.5.6). */
export function allowedMethods(canLogIn: boolean): Readonly<Record<string, readonly Method[]>> {
  const login: Record<string, readonly Method[]> = { '/setup/login': READ, '/setup/callback': READ }
  return {
    '/setup': [...READ, 'POST'],
    '/setup/remove': ['POST'],
    '/setup/test': ['POST'],
    '/setup/logout': [...READ, 'POST'],
    ...(canLogIn && login),
  }
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export type Method = (typeof METHODS)[number]

const READ: readonly Method[] = ['GET', 'HEAD']
