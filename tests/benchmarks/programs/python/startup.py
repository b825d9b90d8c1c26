"""Startup: the interpreter's own, and that of modules which scripts begin with."""

import argparse
import collections
import json
import os
import re
import subprocess

print(len([argparse, collections, json, os, re, subprocess]))
