# SPDX-License-Identifier: Apache-2.0
"""Explanations on the cloud: of situations, and of images in glance."""

from tests.cloud.integration import base
from tests.cloud.integration import tool
from tests.cloud.situations import furnish
from tests.cloud.situations import scene
from tests.cloud.situations import servers

# Of each kind; none of them restarts nova-scheduler.
SELECTED = ('no-vcpu', 'trait', 'group-trait', 'disabled', 'not-in-zone',
            'forced', 'anti-affinity', 'migrate', 'other-segment',
            'cell-down', 'group-room', 'name-conflict', 'no-policy',
            'pci-alias', 'units', 'unknown-class', 'unknown-trait')


class TestSituations(base.TestCase):

    def test_selection(self):
        """Each is explained, and the step lets the request succeed."""
        selected = ['--only=%s' % name for name in SELECTED]
        printed = tool.check(self, tool.call(
            '--directory', self.cloud.state.directory, 'situations',
            *selected))
        self.assertIn('%d situations, %d as expected, 0 failed' % (
            len(SELECTED), len(SELECTED)), printed)


class TestImages(base.TestCase):

    def explain(self, possible, *argv):
        """Check whether a host is left, and what excludes it if none is."""
        status, out, err = self.scene.run(
            [scene.MANAGE, 'scheduling', 'explain', *argv])
        self.assertNotIn('Traceback', err)
        self.assertEqual((int(not possible), not possible), (
            status, 'unable to run the image' in out), out + err)

    def test_new_and_rebuilt_server(self):
        """Nova rebuilds a server with an image that its host can run."""
        self.explain(True, '--flavor', 'tiny', '--image', servers.IMAGE)
        server = servers.boot(self.scene, 'tiny')
        # Nova's fake driver runs x86_64.
        for image, possible in (
                (furnish.image(self.scene), True),
                (furnish.image(self.scene, hw_architecture='aarch64'), False)):
            self.explain(possible, '--flavor', 'tiny', '--image', image)
            rebuild = servers.Move(
                self.scene, server, 'rebuild', '--image', image,
                action={'rebuild': {'imageRef': image}})
            self.explain(possible, *rebuild.arguments())
            self.assertEqual(possible, bool(rebuild.make().hosts))
