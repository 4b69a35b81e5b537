import { Type } from '@sinclair/typebox'
import type { SingleKind } from '../kinds/single-kind.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'

/** How users of this PCE log in (P12). What stands here changes nothing about the logins of the simulator. */
export const authenticationSettings: SingleKind = {
  route: '/authentication_settings',
  noun: 'authentication_settings',
  defaults: { authentication_type: 'Local' },
  shape: new Shape(
    'authentication_settings_put',
    Type.Object({ authentication_type: OneOf('Local', 'RADIUS', 'SAML', 'LDAP') }, CLOSED),
  ),
}
