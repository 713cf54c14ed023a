# SPDX-License-Identifier: Apache-2.0
"""Images that an explanation reads from glance."""

from tests.cloud.integration import base
from tests.cloud.situations import furnish
from tests.cloud.situations import scene
from tests.cloud.situations import servers

EXPLAIN = (scene.MANAGE, 'scheduling', 'explain')
REFUSED = 'unable to run the image'
# Nova's fake driver runs x86_64.
FOREIGN = {'hw_architecture': 'aarch64'}


class TestImages(base.TestCase):

    def explain(self, possible, *argv):
        """Check whether a host is left, and what excludes it if none is."""
        status, out, err = self.scene.run([*EXPLAIN, *argv])
        self.assertNotIn('Traceback', err)
        self.assertEqual((int(not possible), not possible),
                         (status, REFUSED in out), out + err)

    def test_new_server(self):
        """Nova gives a server with the image a host, if one was found."""
        for image, possible in ((servers.IMAGE, True),
                                (furnish.image(self.scene), True),
                                (furnish.image(self.scene, **FOREIGN), False)):
            self.explain(possible, '--flavor', 'tiny', '--image', image)

    def test_rebuild(self):
        """Nova rebuilds the server with an image that its host can run."""
        server = servers.boot(self.scene, 'tiny')
        for image, possible in ((furnish.image(self.scene), True),
                                (furnish.image(self.scene, **FOREIGN), False)):
            rebuild = servers.Move(
                self.scene, server, 'rebuild', '--image', image,
                action={'rebuild': {'imageRef': image}})
            self.explain(possible, *rebuild.arguments())
            self.assertEqual(possible, bool(rebuild.make().hosts))
