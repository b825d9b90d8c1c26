import sys
import unittest

sys.path.insert(0, "src")
from stats import mean, old_name


class StatsTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 3]), 2)

    def test_median(self):
        self.assertEqual(old_name([3, 1, 2]), 2)
